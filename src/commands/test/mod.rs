//! `tollgate test`: unit tests of a policy. A test file holds cases, a case holds events, and an event the verdict that is expected.
//!
//! ```text
//! files ─▶ suites ─▶ each case on a fresh state ─▶ expected against got ─▶ report, JUnit
//!                                               └─▶ coverage of the policy
//! ```

mod answer;
mod coverage;
mod expected;
mod message;
mod run;
mod suite;

use std::process::ExitCode;
use std::rc::Rc;

use crate::commands::shared::Screen;
use crate::commands::shared::suites::{self, SuiteArgs};
use coverage::Coverage;
use suite::Tested;
use tollgate_config::settings::Settings;

pub(super) fn execute(args: &SuiteArgs, settings: Settings, has_config: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let name = if has_config { "the configuration in force" } else { "the built-in defaults" };
    let (topic, subject_keys) = (settings.kafka.topics.events, settings.subject_keys);
    let in_force = Rc::new(Tested { name: name.to_owned(), settings: settings.policy, topic, subject_keys });
    suites::run(args, &in_force, Coverage::default(), screen)
}

//! `tollgate abuse test`: unit tests of rules against abuse. A test file holds cases, a case holds signals at times, and exactly the alerts
//! that are expected.
//!
//! ```text
//! files ─▶ suites ─▶ each case on a fresh state: signals and clocks ─▶ fold ─▶ expected against got ─▶ report, JUnit
//!                                                                        └─▶ which rules fired
//! ```

mod compare;
mod expected;
mod names;
mod run;
mod signals;
mod suite;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::rc::Rc;

use serde_json::json;

use crate::commands::shared::suites::{self, Case as _, Outcome, Reach, SuiteArgs, percent};
use crate::commands::shared::{Screen, shown};
use compare::compare;
use suite::{Case, Tested};
use tollgate_config::settings::Settings;

/// How often each rule fired, by id and version, so that a rule counts once in however many files it is tested.
#[derive(Debug, Default)]
struct Fired(BTreeMap<(String, String), u64>);

pub(super) fn execute(args: &SuiteArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let in_force = Rc::new(Tested::of(settings, "the configuration in force"));
    suites::run(args, &in_force, Fired::default(), screen)
}

impl Reach<Tested> for Fired {
    const WHOLE: &'static str = "the rules";

    fn begin(&mut self, tested: &Tested) {
        for rule in &tested.rules.rules {
            self.0.entry((rule.id.clone(), rule.version.to_string())).or_default();
        }
    }

    fn run(&mut self, tested: &Tested, case: &Case) -> Outcome {
        let rules = &tested.rules.rules;
        let got = run::run(case, tested);
        for rule in got.fired.iter().filter_map(|at| rules.get(*at)) {
            *self.0.entry((rule.id.clone(), rule.version.to_string())).or_default() += 1;
        }
        Outcome { failures: compare(case, &got), ..case.outcome() }
    }

    fn reached(&self) -> (usize, usize) {
        (self.0.values().filter(|count| **count > 0).count(), self.0.len())
    }

    fn write(&self, out: &mut impl io::Write, _: Screen) -> io::Result<()> {
        writeln!(out, "{} % of the rules fired", percent(self.reached()))?;
        for ((rule, _), _) in self.0.iter().filter(|(_, count)| **count == 0) {
            writeln!(out, "never fired: {}", shown(rule))?;
        }
        Ok(())
    }

    fn write_json(&self, out: &mut impl io::Write) -> io::Result<()> {
        let rule = |((rule, version), count): (&(String, String), &u64)| json!({"rule": rule, "rule_version": version, "fired": count});
        let rules: Vec<_> = self.0.iter().map(rule).collect();
        writeln!(out, "{}", json!({"percent": percent(self.reached()), "coverage": rules}))
    }
}

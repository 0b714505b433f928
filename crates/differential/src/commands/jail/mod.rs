//! The jail: a root file system of its own, without network, in which whatever is not listed is a canary.

mod build;
mod errors;
mod places;
mod run;
mod self_test;

pub(super) use build::Jail;
pub(super) use run::{Limits, Run, Runner, Shell};
pub(super) use self_test::self_test;

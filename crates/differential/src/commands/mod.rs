//! Runs command lines that the rules allow in four shells, inside a jail in which every program that is not listed is a canary.
//!
//! A generator makes lines near the border of what is allowed. A line that is allowed must run no canary, must write nothing outside the
//! one folder that the file rules give it, and must not use the network, in bash, dash, zsh and busybox' sh alike. What breaks this is
//! made as short as it gets and printed.
//!
//! The first process makes a [`plan`] of the jail and starts one worker for each core in namespaces of its own. A worker builds the jail
//! around itself, makes lines, decides on them, runs them, and tells the first process what it found.

mod files;
mod finding;
mod generate;
mod jail;
mod lead;
mod options;
mod plan;
mod rules;
mod worker;

pub use finding::{Finding, Harm};
pub use lead::run;
pub use options::Options;

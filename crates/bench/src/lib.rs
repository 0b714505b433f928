//! The library of `tollgate-bench`: puts load on a worker, and measures what the worker makes of it.
//!
//! ```text
//! traffic (seed) ─▶ sender ─▶ events ─▶ worker under test ─▶ decisions ─▶ reader ─▶ arrivals ─▶ tally
//!                     ▲ schedule: when each event is due ──────────────────────────────▲
//! ```
//!
//! The schedule, the meter, the search for the peak and the report are pure, and stand apart from what talks to Kafka. The traffic, the
//! broker and the process guard are the test kit's. Workers are processes of the `tollgate` binary (module `binary`).

mod absence;
mod abuse;
mod alone;
mod binary;
mod budget;
mod checkout;
mod cli;
mod command;
mod drain;
mod load;
mod machine;
mod meter;
mod offline;
mod overload;
mod partitions;
mod peak;
mod producer;
mod progress;
mod reader;
mod report;
mod schedule;
mod session;
mod suite;
mod topics;
mod usage;
mod versus;
mod watched;
mod worker;

pub use cli::Cli;
pub use command::execute;

use absence::Absence;
use abuse::{AbuseFindings, FoldCost};
use budget::Budget;
use checkout::{BASELINES, Checkout};
use drain::Drained;
use load::{Load, Observed, Phase, Times};
use machine::Machine;
use meter::{Arrivals, Tally};
use offline::{BENCHES, Offline};
use overload::Overload;
use partitions::{PARTITIONS, PartitionCost};
use peak::{Search, sustained};
use producer::Sender;
use progress::Progress;
use reader::Reader;
use report::{Findings, SweepPoint, markdown, page, rows};
use schedule::Schedule;
use session::{Bed, Peak, Plan, Session};
use suite::Suite;
use topics::Topics;
use usage::Usage;
use versus::{Ratio, Versus};
use worker::{Invocation, Subject, Variant, Worker};

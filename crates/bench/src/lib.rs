//! Load on a worker, and what it makes of it.
//!
//! ```text
//! mix (seed) ─▶ sender ─▶ events ─▶ worker under test ─▶ decisions ─▶ reader ─▶ arrivals ─▶ tally
//!                 ▲ schedule: when each event is due ──────────────────────────────▲
//! ```
//!
//! What is pure stands apart from what touches Kafka: the traffic, the schedule, the meter, the search for the peak, the report.

mod absence;
mod broker;
mod budget;
mod checkout;
mod drain;
mod keeper;
mod load;
mod machine;
mod meter;
mod mix;
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
mod worker;

pub use absence::Absence;
pub use broker::{Broker, default_cache, lacking};
pub use budget::Budget;
pub use checkout::{BASELINES, Checkout};
pub use drain::{Agreement, DrainRound, Drained};
pub use keeper::Keeper;
pub use load::{Load, Observed, Phase, Times};
pub use machine::Machine;
pub use meter::{Arrivals, Percentiles, Tally};
pub use mix::{DENIED_TOOL, Mix, MixEvent, MixSettings, Random, Zipf};
pub use offline::{BENCHES, DecisionCost, Growth, InstructionCost, Offline, ThreadMemory};
pub use overload::{Burst, Overload};
pub use partitions::{PARTITIONS, PartitionCost};
pub use peak::{Search, Shortfall, sustained};
pub use producer::{NUMBER_HEADER, Sender, Sent};
pub use progress::Progress;
pub use reader::Reader;
pub use report::{Findings, Row, SweepPoint, markdown, page, rows};
pub use schedule::Schedule;
pub use session::{Bed, Peak, Plan, Session};
pub use suite::Suite;
pub use topics::Topics;
pub use usage::Usage;
pub use versus::{Ratio, Round, Side, Versus};
pub use worker::{Invocation, Subject, Worker};

//! Measures abuse over the fleet: what counting costs deciding, the fold alone, and how soon alerts and suspensions follow an event.
//!
//! | module | what |
//! |---|---|
//! | `settings` | the workers that are compared, and the rules that they count by |
//! | `offence` | events that offend against one of these rules |
//! | `alerted` | from an event to its alert, beside other traffic |
//! | `blocked` | from an event to the first blocked call on every partition |
//! | `stream` | a user who calls on every partition all the time |
//! | `controls` | from a suspension to the first blocked call on every partition |
//! | `counted` | events per second until their signals are counted |
//! | `deciding` | CPU per event of deciding, beside a worker without abuse |

mod alerted;
mod blocked;
mod controls;
mod counted;
mod deciding;
mod offence;
mod settings;
mod stream;

use std::time::Duration;

use anyhow::{Context as _, Result};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_core::decide::controls::{ControlId, Subject as Caller, SubjectHasher};
use tollgate_core::decide::ruling::SubjectKind;

use super::offline::figures;
use super::topics::client;
use super::{Absence, Checkout, Phase, Progress, Ratio, Session};
pub use alerted::Delays;
pub(crate) use controls::SWITCH_MS_MAX;
use settings::SUBJECT_KEY;

/// How long the benchmark of the fold may take once it is built, and how long building it.
const FOLD_TIME_MAX: Duration = Duration::from_secs(2_400);
const FLUSH_TIME_MAX: Duration = Duration::from_secs(30);

/// The figures of abuse over the fleet; a part that failed is left out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AbuseFindings {
    /// CPU per event of deciding with the pack and suspended subjects, over that with neither, draining at the same time.
    pub cpu: Option<Ratio>,
    /// The fold alone, beside a naive one.
    pub fold: Vec<FoldCost>,
    /// Latency and alerts at half of the peak.
    pub usual: Option<RateMeasurement>,
    /// The same with one user who has half of all traffic.
    pub hot: Option<RateMeasurement>,
    /// Milliseconds from an event to the first blocked call, on each of the partitions.
    pub blocked: Option<Delays>,
    /// Events per second until their signals are counted, with one user who has half of all traffic over that without.
    pub throughput: Option<Ratio>,
}

/// What was measured at a rate: verdicts on the traffic, and alerts on those who offend beside it.
#[derive(Debug, Clone, Serialize)]
pub struct RateMeasurement {
    /// The traffic.
    pub phase: Phase,
    /// Milliseconds from an offending event to its alert.
    pub alerts: Delays,
}

/// A row of the benchmark `fold`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldCost {
    /// What was measured.
    pub name: String,
    /// By how many rules.
    pub rules: u64,
    /// How many subjects there were.
    pub subjects: u64,
    /// Signals per second on one core.
    pub signals_per_second: f64,
    /// The same once every subject is known.
    pub signals_per_second_known: f64,
    /// Bytes of the process for each subject.
    pub bytes_per_subject: f64,
}

impl AbuseFindings {
    /// Returns the row of the benchmark of this name.
    pub fn cost(&self, name: &str) -> Option<&FoldCost> {
        self.fold.iter().find(|cost| cost.name == name)
    }
}

impl Session {
    /// Measures all of it. A part that fails becomes an absence, and the rest goes on. `rate` is left out where the peak is to be searched.
    pub fn abuse(&self, checkout: &Checkout, drained: usize, rounds: usize, rate: Option<f64>) -> (AbuseFindings, Vec<Absence>) {
        let (mut found, mut absences) = (AbuseFindings::default(), Vec::new());
        let mut keep = |part: &str, measured: Result<()>| {
            if let Err(error) = measured {
                self.progress.say(&format!("{part}: {error:#}"));
                absences.push(Absence::failed(part, &format!("{error:#}")));
            }
        };
        keep("blocked calls", self.blocked().map(|delays| found.blocked = Some(delays)));
        keep("alerts at half of peak", self.alerted(&mut found, rate));
        keep("throughput", self.counted(drained, rounds).map(|ratio| found.throughput = ratio));
        keep("CPU of deciding", self.deciding(drained, rounds).map(|ratio| found.cpu = ratio));
        match fold(checkout, &self.progress) {
            Ok(fold) => found.fold = fold,
            Err(absence) => absences.push(absence),
        }
        (found, absences)
    }

    /// Writes so many suspensions, of users whom the traffic does not have: every event is looked up among them, and none is blocked.
    pub(super) fn suspend(&self, topic: &str, count: u32) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let suspensions = Suspensions::new(self, topic)?;
        (0..count).try_for_each(|number| suspensions.set("tenant-0", &format!("suspended-{number}"), true))?;
        suspensions.producer.flush(FLUSH_TIME_MAX).context("the brokers do not acknowledge what is sent")
    }
}

/// Suspends users, and lifts their suspensions.
struct Suspensions {
    producer: BaseProducer,
    topic: String,
}

impl Suspensions {
    /// Returns a writer to this topic of controls.
    fn new(session: &Session, topic: &str) -> Result<Self> {
        let mut config = client(&session.kafka);
        config.set("enable.idempotence", "true").set("linger.ms", "0").set("partitioner", "murmur2_random");
        Ok(Self { producer: config.create().context("kafka.properties")?, topic: topic.to_owned() })
    }

    /// Sends the record that suspends a user, or that lifts the suspension.
    fn set(&self, tenant: &str, id: &str, is_suspended: bool) -> Result<()> {
        let hash = SubjectHasher::new(Some(SUBJECT_KEY)).hash(&Caller { kind: SubjectKind::User, tenant, id });
        let key = ControlId::Subject(SubjectKind::User, hash).to_string();
        let value = json!({"type": "subject", "kind": "user", "hash": hash.to_string(), "state": "suspended"}).to_string();
        let mut record = BaseRecord::to(&self.topic).key(&key);
        record.payload = is_suspended.then_some(&value);
        self.producer.send(record).map_err(|(error, _)| error)?;
        Ok(())
    }
}

/// Runs the benchmark of the fold alone.
fn fold(checkout: &Checkout, progress: &Progress) -> Result<Vec<FoldCost>, Absence> {
    progress.say("building the benchmark of the fold");
    checkout.prepare_bench("fold", FOLD_TIME_MAX)?;
    progress.say("folding signals in the core alone");
    let printed = checkout.run_bench("fold", FOLD_TIME_MAX)?;
    figures("fold", &printed).map_err(|error| Absence::failed("fold", &format!("{error:#}")))
}

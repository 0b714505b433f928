//! What two sides decide on the same records: two policies, or the verdicts that were published and a policy.
//!
//! ```text
//! records ─▶ by partition ─▶ both sides, on all cores ─▶ tally ─▶ summary, limits
//!                                                     └─▶ a line for each difference
//! ```

mod comparison;
mod cut_off;
mod first;
mod flip;
mod limit;
mod recorded;
mod sides;
mod summary;
mod suspended;
mod tally;
mod trial;

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use tollgate_core::decide::shadow::Sample;

use crate::{LineFault, ParallelReader, ReadFile, unreadable_from_here, visitors_max};

pub use comparison::Flips;
pub use flip::Side;
pub use limit::Limit;
pub use recorded::Recorded;
pub use sides::Judge;
pub use summary::{At, ChangeSummary, Named, SideSummary, Summary};
pub use suspended::{Examples, RuleFound, SideRules, Suspensions};
pub use tally::{Example, NOBODY, Share};
pub use trial::{Trial, TrialSummary};

use comparison::Comparison;
use sides::Sides;
use suspended::Fleets;
use tally::Tally;

/// The two sides of a comparison.
#[derive(Debug)]
pub struct Compared {
    what: ComparedSides,
    /// The rules of both sides, where they are compared.
    rules: Option<[SideRules; 2]>,
}

#[derive(Debug)]
enum ComparedSides {
    Policies([Judge; 2]),
    Published(Arc<Recorded>, Judge),
}

/// The options of a comparison.
pub struct Options<'o> {
    /// What each side is called.
    pub names: [String; 2],
    /// The share of threads that is counted; `None` is all of them.
    pub sample: Option<Sample>,
    /// Where each difference is written as a line of JSON.
    pub flips: Option<Flips>,
    /// The signals topic.
    pub signals_topic: &'o str,
}

impl Debug for Options<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("Options").field("names", &self.names).finish_non_exhaustive()
    }
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Findings {
    /// What is shown.
    pub summary: Summary,
    /// The lines that hold no record, in their order.
    pub faults: Vec<(u64, LineFault)>,
    /// The topics of the records.
    pub topics: BTreeSet<String>,
    tally: Tally,
}

impl Compared {
    /// Returns the comparison of two policies; with `rules`, the rules against abuse are compared too.
    #[must_use]
    pub fn policies(judges: [Judge; 2], rules: Option<[SideRules; 2]>) -> Self {
        Self { what: ComparedSides::Policies(judges), rules }
    }

    /// Returns the comparison of the verdicts that were published with a policy.
    #[must_use]
    pub fn published(recorded: Recorded, judge: Judge) -> Self {
        Self { what: ComparedSides::Published(Arc::new(recorded), judge), rules: None }
    }

    /// Returns whether every line of the published verdicts holds a verdict, and no verdict is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !matches!(&self.what, ComparedSides::Published(recorded, _) if !recorded.faults.is_empty() || recorded.missing > 0)
    }

    /// Returns how many bytes an event may have.
    #[must_use]
    pub fn event_bytes_max(&self) -> usize {
        match &self.what {
            ComparedSides::Policies(judges) => judges.iter().map(|judge| judge.policy.limits().event_bytes_max).max().unwrap_or_default(),
            ComparedSides::Published(_, judge) => judge.policy.limits().event_bytes_max,
        }
    }

    /// Asks both sides about every record. Counting abuse takes one thread, since it depends on the order of all events.
    ///
    /// # Errors
    /// A line of `flips` cannot be written, or a part of the comparison fails.
    pub fn run(&self, traffic: ParallelReader<'_>, options: Options<'_>) -> anyhow::Result<Findings> {
        let Options { names, sample, flips, signals_topic } = options;
        let topic = traffic.topic;
        let fleets = || self.rules.as_ref().map(|rules| Fleets::new(signals_topic, rules));
        let new = || Comparison::new(topic, self.sides(), sample, flips.clone(), fleets());
        let visitors = if self.rules.is_some() { 1 } else { visitors_max() };
        let ReadFile { visitors, topics, broken } = traffic.run(std::iter::repeat_with(new).take(visitors).collect())?;
        let (mut tally, mut faults) = (Tally::default(), Vec::new());
        for mut visitor in visitors {
            visitor.tally.abuse = visitor.fleets.take().map(Fleets::finish).transpose()?;
            tally.merge(visitor.tally);
            faults.extend(visitor.faults);
        }
        faults.extend(broken.map(|(number, error)| (number, unreadable_from_here(&error))));
        faults.sort_unstable_by_key(|(number, _)| *number);
        Ok(Findings { summary: Summary::of(&tally, self.versions(), names), faults, topics, tally })
    }

    /// Returns both sides, which know no thread.
    fn sides(&self) -> Sides {
        match &self.what {
            ComparedSides::Policies(judges) => Sides::policies(judges.clone()),
            ComparedSides::Published(recorded, judge) => Sides::published(Arc::clone(recorded), judge.clone()),
        }
    }

    /// Returns the policy versions of both sides.
    fn versions(&self) -> [Vec<String>; 2] {
        let one = |judge: &Judge| vec![judge.policy.version().to_owned()];
        match &self.what {
            ComparedSides::Policies([a, b]) => [one(a), one(b)],
            ComparedSides::Published(recorded, judge) => [recorded.policies.keys().cloned().collect(), one(judge)],
        }
    }
}

impl Findings {
    /// Returns a sentence for each limit that is exceeded.
    #[must_use]
    pub fn exceeded(&self, limits: &[Limit]) -> Vec<String> {
        limits.iter().filter_map(|limit| limit.exceeded(&self.tally)).collect()
    }
}

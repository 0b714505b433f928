//! Signals that count for nobody, which somebody who tries rules would otherwise miss without a word.

use tollgate_abuse::Folded;

/// What was left out while signals were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// Signals that came too late.
    pub late: u64,
    /// Signals that an exception of a rule left out.
    pub exempt: u64,
    /// Subjects that were forgotten because memory is bounded.
    pub forgotten: u64,
}

impl Uncounted {
    /// Adds what was left out of a record.
    pub fn add(&mut self, folded: &Folded) {
        self.late += folded.counts.late;
        self.exempt += folded.counts.rules.iter().map(|rule| rule.exempt).sum::<u64>();
        self.forgotten += folded.counts.subjects_dropped;
    }

    /// Returns a sentence for each kind of which there was any.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let Self { late, exempt, forgotten } = *self;
        let late = (late > 0).then(|| {
            format!(
                "{late} signals came too late, more than abuse.lateness_seconds behind the events before them, and count for nobody; \
                 is the traffic in the order of its times?"
            )
        });
        let exempt = (exempt > 0).then(|| format!("{exempt} signals were left out by exceptions of rules"));
        let forgotten = (forgotten > 0)
            .then(|| format!("{forgotten} subjects were forgotten, because there are more than abuse.subjects_per_partition_max"));
        [late, exempt, forgotten].into_iter().flatten()
    }
}

//! The series of one partition or member: made when they are first used, and gone with their last holder.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use prometheus::core::{MetricVec, MetricVecBuilder};
use rustc_hash::FxHashMap;

/// A metric by one label.
pub trait Labelled: Clone {
    /// What one value of the label has.
    type One;

    /// Returns the series of a value of the label, and makes it if there is none.
    fn one(&self, label: &str) -> Self::One;

    /// Takes the series of a value of the label away, if there is one.
    fn remove(&self, label: &str);
}

impl<B: MetricVecBuilder> Labelled for MetricVec<B> {
    type One = B::M;

    fn one(&self, label: &str) -> B::M {
        self.with_label_values(&[label])
    }

    fn remove(&self, label: &str) {
        // A series that was never used is not there to be removed, which is as well.
        let _absent = self.remove_label_values(&[label]);
    }
}

/// The series that one value of a label has of a metric. It dereferences to the metric, which makes the series: what nobody has set yet
/// is not shown as 0.
#[derive(Debug)]
pub struct Series<V: Labelled> {
    all: V,
    label: String,
    one: OnceLock<V::One>,
}

impl<V: Labelled> Series<V> {
    pub(super) fn new(all: &V, label: &str) -> Self {
        Self { all: all.clone(), label: label.to_owned(), one: OnceLock::new() }
    }

    pub(super) fn remove(&self) {
        self.all.remove(&self.label);
    }
}

impl<V: Labelled> Deref for Series<V> {
    type Target = V::One;

    fn deref(&self) -> &V::One {
        self.one.get_or_init(|| self.all.one(&self.label))
    }
}

/// How many hold the series of each value of a label. A partition that moves between the members of a process may be held by both for a
/// moment: the one that lets go must not take the other's series away.
#[derive(Debug, Default)]
pub(super) struct Holders {
    counts: Mutex<FxHashMap<String, usize>>,
}

impl Holders {
    pub(super) fn take(&self, label: &str) {
        *self.counts().entry(label.to_owned()).or_default() += 1;
    }

    /// Calls `remove` if nobody else holds the series; whoever takes them meanwhile waits.
    pub(super) fn release(&self, label: &str, remove: impl FnOnce()) {
        let mut counts = self.counts();
        let left = counts.get(label).map_or(0, |count| count.saturating_sub(1));
        if left > 0 {
            counts.insert(label.to_owned(), left);
        } else {
            counts.remove(label);
            remove();
        }
    }

    fn counts(&self) -> MutexGuard<'_, FxHashMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

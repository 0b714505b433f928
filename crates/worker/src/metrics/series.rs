//! The series of one partition or member: each is made on its first use and removed with the last holder.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use prometheus::core::{MetricVec, MetricVecBuilder};
use rustc_hash::FxHashMap;

/// A metric with one label.
pub trait Labelled: Clone {
    /// The metric of one value of the label.
    type One;

    /// Returns the series of a value of the label, and creates it if there is none.
    fn one(&self, label: &str) -> Self::One;

    /// Removes the series of a value of the label, if there is one.
    fn remove(&self, label: &str);
}

impl<B: MetricVecBuilder> Labelled for MetricVec<B> {
    type One = B::M;

    fn one(&self, label: &str) -> B::M {
        self.with_label_values(&[label])
    }

    fn remove(&self, label: &str) {
        // A series that was never used does not exist, so removing it may fail.
        let _absent = self.remove_label_values(&[label]);
    }
}

/// The series of a metric for one value of its label. Dereferencing it creates the series, so a metric that was never set is not shown as
/// 0.
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

    /// Removes the series until it is used again, because what it said is unknown now.
    pub fn hide(&mut self) {
        if self.one.take().is_some() {
            self.remove();
        }
    }
}

impl<V: Labelled> Deref for Series<V> {
    type Target = V::One;

    fn deref(&self) -> &V::One {
        self.one.get_or_init(|| self.all.one(&self.label))
    }
}

/// Counts the holders of the series of each value of a label. A partition that moves between members of a process may have two holders for
/// a moment: when the first one lets go, the series of the other must not be removed.
#[derive(Debug, Default)]
pub(super) struct Holders {
    counts: Mutex<FxHashMap<String, usize>>,
}

impl Holders {
    pub(super) fn take(&self, label: &str) {
        *self.counts().entry(label.to_owned()).or_default() += 1;
    }

    /// Calls `remove` if nobody else holds the series. A new holder waits for it.
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

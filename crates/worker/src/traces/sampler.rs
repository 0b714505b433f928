//! Which records get a span. OpenTelemetry calls it `parentbased_traceidratio`.

use super::context::TraceContext;

/// The part of a trace's id that is compared: its last 63 bits, as the OpenTelemetry SDKs do, so that all of them choose the same traces.
const COMPARED_BITS: u32 = 63;

/// Chooses the records that get a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampler {
    /// An id is chosen if its compared part is below this.
    below: u64,
    follows_parent: bool,
}

impl Sampler {
    /// Returns a sampler that takes one trace in `one_in`. If it follows the parent, that holds only for records without a valid
    /// `traceparent`: the others are taken if their sender records its own span.
    pub(super) fn new(one_in: u32, follows_parent: bool) -> Self {
        let all = 1 << COMPARED_BITS;
        Self { below: all / u64::from(one_in.max(1)), follows_parent }
    }

    /// Returns whether a record gets a span, by its parent if it has one, and the id of its trace.
    pub(super) fn takes(self, parent: Option<TraceContext>, trace_id: u128) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows_parent) {
            return parent.is_sampled();
        }
        // The cast takes the last 64 bits.
        #[allow(clippy::cast_possible_truncation, reason = "only the last bits count")]
        let compared = (trace_id as u64) >> (u64::BITS - COMPARED_BITS);
        compared < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(flags: u8) -> Option<TraceContext> {
        Some(TraceContext { trace_id: 1, span_id: 1, flags })
    }

    #[test]
    fn a_parent_decides_if_it_is_followed() {
        for one_in in [1, u32::MAX] {
            let sampler = Sampler::new(one_in, true);
            assert!(sampler.takes(parent(1), u128::MAX), "one in {one_in}");
            assert!(!sampler.takes(parent(0), 1), "one in {one_in}");
        }
        assert!(Sampler::new(1, false).takes(parent(0), u128::MAX));
        assert!(!Sampler::new(100, false).takes(parent(1), u128::MAX));
    }

    #[test]
    fn without_a_parent_the_share_is_what_was_asked_for() {
        let mut ids = fastrand::Rng::with_seed(7);
        for one_in in [1_u32, 2, 10, 100] {
            let sampler = Sampler::new(one_in, true);
            let taken = (0..200_000).filter(|_| sampler.takes(None, ids.u128(..))).count();
            let expected = 200_000 / one_in as usize;
            assert!(taken.abs_diff(expected) <= expected / 10 * usize::from(one_in > 1), "{taken} of 200000 at one in {one_in}");
        }
    }

    /// What the SDKs take at 50 %: they compare `id >> 1` with `0.5 * 2^63`.
    #[test]
    fn the_same_ids_are_taken_as_by_others() {
        let half = Sampler::new(2, true);
        assert!(half.takes(None, 0xffff_ffff_ffff_ffff_7fff_ffff_ffff_ffff), "only the last half of the id counts");
        assert!(!half.takes(None, 0x8000_0000_0000_0000));
    }
}

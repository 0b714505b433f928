//! Slots in order of their last touch: a doubly linked list whose links live in the slots themselves, so that keeping the order costs
//! eight bytes a thread and no allocation.

use slab::Slab;

/// The place of a thread in its store, for as long as the thread is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotKey(u32);

impl SlotKey {
    /// The key of a place in a slab. A store holds far fewer threads than there are keys.
    pub(super) fn new(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// No slot.
const NONE: SlotKey = SlotKey(u32::MAX);

/// A slot's neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    older: SlotKey,
    newer: SlotKey,
}

impl Default for Links {
    fn default() -> Self {
        Self { older: NONE, newer: NONE }
    }
}

/// What has links.
pub(super) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// See the module.
#[derive(Debug)]
pub(super) struct Order {
    oldest: SlotKey,
    newest: SlotKey,
}

impl Default for Order {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE }
    }
}

impl Order {
    /// The slot that was touched longest ago.
    pub(super) fn oldest(&self) -> Option<SlotKey> {
        Some(self.oldest).filter(|key| *key != NONE)
    }

    /// Puts a slot that is in no order to the end.
    pub(super) fn push(&mut self, slots: &mut Slab<impl Linked>, key: SlotKey) {
        set(slots, key, |links| *links = Links { older: self.newest, newer: NONE });
        set(slots, self.newest, |links| links.newer = key);
        self.newest = key;
        if self.oldest == NONE {
            self.oldest = key;
        }
    }

    /// Takes a slot of this order out of it.
    pub(super) fn remove(&mut self, slots: &mut Slab<impl Linked>, key: SlotKey) {
        let Some(Links { older, newer }) = slots.get_mut(key.at()).map(|slot| std::mem::take(slot.links())) else { return };
        set(slots, older, |links| links.newer = newer);
        set(slots, newer, |links| links.older = older);
        if self.oldest == key {
            self.oldest = newer;
        }
        if self.newest == key {
            self.newest = older;
        }
    }
}

fn set(slots: &mut Slab<impl Linked>, key: SlotKey, change: impl FnOnce(&mut Links)) {
    if let Some(slot) = slots.get_mut(key.at()) {
        change(slot.links());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Slot(Links);

    impl Linked for Slot {
        fn links(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    fn drain(order: &mut Order, slots: &mut Slab<Slot>) -> Vec<usize> {
        std::iter::from_fn(|| {
            let key = order.oldest()?;
            order.remove(slots, key);
            Some(key.at())
        })
        .collect()
    }

    #[test]
    fn slots_leave_in_order_of_touch() {
        let (mut slots, mut order) = (Slab::new(), Order::default());
        let keys: Vec<SlotKey> = (0..4).map(|_| SlotKey::new(slots.insert(Slot(Links::default())))).collect();
        keys.iter().for_each(|key| order.push(&mut slots, *key));
        for at in [1, 0, 3] {
            order.remove(&mut slots, keys[at]);
            order.push(&mut slots, keys[at]);
        }
        assert_eq!(drain(&mut order, &mut slots), [2, 1, 0, 3]);
        assert!(order.oldest().is_none());
        order.push(&mut slots, keys[2]);
        assert_eq!(drain(&mut order, &mut slots), [2]);
    }
}

//! The order of a store's slots by their last touch. It is a doubly linked list whose links lie side by side, apart from the slots. The
//! order costs eight bytes a thread and no allocation. Taking a slot out of it does not load the neighbouring slots, which have not been
//! used for long and are not in the processor's cache.

/// The place of a thread in its store. It is valid for as long as the store holds the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotKey(u32);

impl SlotKey {
    /// Returns the key of a place in a slab. A store holds far fewer threads than there are keys.
    pub(super) fn new(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// The key that stands for no slot.
const NONE: SlotKey = SlotKey(u32::MAX);

/// The neighbours of a slot in its order.
#[derive(Debug, Clone, Copy)]
struct Link {
    older: SlotKey,
    newer: SlotKey,
}

/// The neighbours of all slots. A slot is in one order at most, so all orders share the links.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    fn set(&mut self, key: SlotKey, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.0.get_mut(key.at()) {
            change(link);
        }
    }
}

/// The two ends of one order of slots.
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
    /// Returns the slot that was touched longest ago.
    pub(super) fn oldest(&self) -> Option<SlotKey> {
        Some(self.oldest).filter(|key| *key != NONE)
    }

    /// Appends a slot that is in no order yet: it becomes the newest one.
    pub(super) fn push(&mut self, links: &mut Links, key: SlotKey) {
        if links.0.len() <= key.at() {
            links.0.resize(key.at() + 1, Link { older: NONE, newer: NONE });
        }
        links.set(key, |link| *link = Link { older: self.newest, newer: NONE });
        links.set(self.newest, |link| link.newer = key);
        self.newest = key;
        if self.oldest == NONE {
            self.oldest = key;
        }
    }

    /// Takes a slot out of this order, which it must be in.
    pub(super) fn remove(&mut self, links: &mut Links, key: SlotKey) {
        let Some(Link { older, newer }) = links.0.get(key.at()).copied() else { return };
        links.set(older, |link| link.newer = newer);
        links.set(newer, |link| link.older = older);
        if self.oldest == key {
            self.oldest = newer;
        }
        if self.newest == key {
            self.newest = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(order: &mut Order, links: &mut Links) -> Vec<usize> {
        std::iter::from_fn(|| {
            let key = order.oldest()?;
            order.remove(links, key);
            Some(key.at())
        })
        .collect()
    }

    #[test]
    fn slots_leave_in_order_of_touch() {
        let (mut links, mut order) = (Links::default(), Order::default());
        let keys = [0, 1, 2, 3].map(SlotKey::new);
        keys.iter().for_each(|key| order.push(&mut links, *key));
        for at in [1, 0, 3] {
            order.remove(&mut links, keys[at]);
            order.push(&mut links, keys[at]);
        }
        assert_eq!(drain(&mut order, &mut links), [2, 1, 0, 3]);
        assert!(order.oldest().is_none());
        order.push(&mut links, keys[2]);
        assert_eq!(drain(&mut order, &mut links), [2]);
    }
}

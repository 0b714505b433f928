//! The components `..` of paths.

/// The most components `..` that are followed in one path.
pub(super) const CLIMBS_MAX: usize = 16;

/// Returns how often `..` stands in a path.
pub(super) fn count_parents(path: &str) -> usize {
    parents(path).count()
}

/// Returns the components `..` of a path, with their places in it.
pub(super) fn parents(path: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let placed = path.split('/').map(move |component| {
        let start = at;
        at += component.len() + 1;
        (start, component)
    });
    placed.filter(|(_, component)| *component == "..")
}

//! Wildcard patterns, element by element: whether two patterns have a text in common.

/// A part of a wildcard pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A character that stands for itself.
    Char(char),
    /// Any character.
    One,
    /// Any text, the empty one too.
    Many,
    /// A character of these ranges, each with its first and its last character.
    Set(Vec<(char, char)>),
}

/// Returns whether some text matches both patterns; two sets are taken to have a character in common. The time is bounded by the product of
/// the lengths.
#[must_use]
pub fn meet(glob: &[Element], pattern: &[Element]) -> bool {
    // Most pairs differ at one of their ends.
    let differ = |left: Option<&Element>, right: Option<&Element>| left.zip(right).is_some_and(|(left, right)| !agree(left, right));
    if differ(glob.first(), pattern.first()) || differ(glob.last(), pattern.last()) {
        return false;
    }
    let width = pattern.len() + 1;
    let mut row = vec![false; width];
    // `row[j]`: whether the ends of both from here on meet.
    for at in (0..=glob.len()).rev() {
        let mut next = vec![false; width];
        std::mem::swap(&mut row, &mut next);
        for place in (0..=pattern.len()).rev() {
            let below = |place: usize| next.get(place).copied().unwrap_or(false);
            let same = |row: &[bool], place: usize| row.get(place).copied().unwrap_or(false);
            let met = match (glob.get(at), pattern.get(place)) {
                (None, None) => true,
                (Some(Element::Many), _) => below(place) || place < pattern.len() && same(&row, place + 1),
                (_, Some(Element::Many)) => same(&row, place + 1) || at < glob.len() && below(place),
                (Some(element), Some(other)) => agree(element, other) && below(place + 1),
                _ => false,
            };
            if let Some(cell) = row.get_mut(place) {
                *cell = met;
            }
        }
    }
    row.first() == Some(&true)
}

fn agree(element: &Element, other: &Element) -> bool {
    match (element, other) {
        (Element::Char(left), Element::Char(right)) => left == right,
        (Element::Set(ranges), Element::Char(character)) => ranges.iter().any(|(low, high)| (*low..=*high).contains(character)),
        _ => true,
    }
}

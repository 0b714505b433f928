//! Arguments of the programs that have options which run, write or connect, near to those that do not.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fastrand::Rng;
use serde::Deserialize;

use super::tabled;
use super::words::{GLOBS, PLAIN};

/// The fragments of one program's arguments. A fragment is one word or several.
#[derive(Deserialize)]
struct Fragments {
    /// Such as are harmless.
    harmless: Vec<String>,
    /// Such as are not, or not in every place.
    odd: Vec<String>,
}

/// All of them, by program.
static PROGRAMS: LazyLock<BTreeMap<String, Fragments>> =
    LazyLock::new(|| serde_json::from_str(include_str!("programs.json")).unwrap_or_default());

/// Returns arguments for a program: of its fragments, or by its table. Nothing for a program that has neither, or by chance.
pub(super) fn arguments(rng: &mut Rng, program: &str) -> String {
    let Some(fragments) = PROGRAMS.get(program).filter(|_| rng.u8(..3) > 0) else {
        return tabled::arguments(rng, program).unwrap_or_default();
    };
    let mut words = String::new();
    let odd_percent = rng.choice([0, 0, 10, 40]).unwrap_or(0);
    for _ in 0..=rng.usize(..3) {
        let list = if rng.u32(..100) < odd_percent { &fragments.odd } else { &fragments.harmless };
        let fragment = rng.choice(list).map_or("", String::as_str);
        let fragment = if rng.u32(..200) < odd_percent { respelled(rng, fragment) } else { fragment.to_owned() };
        if !words.is_empty() {
            words.push(' ');
        }
        words += &fragment;
    }
    if rng.u8(..4) == 0 {
        let operand = if rng.bool() { rng.choice(PLAIN) } else { rng.choice(GLOBS) };
        words = format!("{words} {}", operand.copied().unwrap_or_default());
    }
    words
}

/// Spells an option in another way: abbreviated, with its value attached or apart, in a bundle, quoted, or from a glob.
fn respelled(rng: &mut Rng, fragment: &str) -> String {
    let (option, rest) = fragment.split_once([' ', '=']).unwrap_or((fragment, ""));
    match rng.u8(..8) {
        0 if option.starts_with("--") && option.len() > 4 => {
            let end = rng.usize(3..option.len());
            format!("{}={rest}", option.get(..end).unwrap_or(option))
        }
        1 => format!("{option}={rest}"),
        2 => format!("{option}{rest}"),
        3 => format!("'{option}' {rest}"),
        4 if option.len() == 2 => format!("-{}{} {rest}", rng.alphabetic(), option.trim_start_matches('-')),
        5 => format!("-{fragment}"),
        6 => format!("-- {fragment}"),
        _ => {
            let mut chars: Vec<char> = option.chars().collect();
            let place = rng.usize(..chars.len().max(1));
            if let Some(char) = chars.get_mut(place) {
                *char = '?';
            }
            format!("{} {rest}", chars.into_iter().collect::<String>())
        }
    }
}

/// Returns the words of all fragments.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    let fragments = PROGRAMS.values().flat_map(|fragments| fragments.harmless.iter().chain(&fragments.odd));
    fragments.flat_map(|fragment| fragment.split([' ', '\'', '"', '\n']))
}

#[cfg(test)]
mod tests {
    #[test]
    fn fragments_are_read() {
        let count = super::words().count();
        assert!(count > 1_000, "{count}");
    }
}

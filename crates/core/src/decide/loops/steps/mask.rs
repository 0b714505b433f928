//! Results without their volatile parts, as hashes: what changes from run to run though nothing has happened.
//!
//! Volatile are addresses, hashes, ids, dates, clock times, durations, numbers of four and more digits, and numbers of lines. Small numbers
//! are not: 3 failed tests are other news than 2.

use crate::decide::loops::hash::Mix;

/// How much of a text is masked, in bytes, at its beginning and at its end. What lies between has to be equal byte for byte.
const HEAD_BYTES: usize = 2_048;
const TAIL_BYTES: usize = 1_024;

/// How long a number or an id is at least that counts as such.
const NUMBER_BYTES_MIN: usize = 4;

/// How many lines a sketch keeps the least hash of.
const BUCKETS: usize = 8;

/// The hashes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// The hash of the text without its volatile parts.
    pub hash: u32,
    /// A sketch of its lines, by which alike texts are found, see [`are_alike`]. Each byte stands for some of the lines; 0 is none.
    pub sketch: [u8; BUCKETS],
    /// A hash of the numbers and ids that were left out. Dates, times, durations and numbers of lines do not count.
    pub numbers: u16,
}

/// Returns the hashes of a text.
pub fn masked(text: &[u8]) -> Masked {
    let (head, rest) = text.split_at_checked(HEAD_BYTES).unwrap_or((text, b""));
    let (middle, tail) = rest.split_at_checked(rest.len().saturating_sub(TAIL_BYTES)).unwrap_or((b"", rest));
    let (mut whole, mut numbers, mut least) = (Mix::default(), Mix::default(), [u32::MAX; BUCKETS]);
    for part in [head, tail] {
        let mut start = 0;
        let ends = memchr::memchr_iter(b'\n', part).chain([part.len()]);
        for end in ends {
            let line = part.get(start..end).unwrap_or_default().trim_ascii();
            start = end + 1;
            if line.is_empty() {
                continue;
            }
            let hash = line_hash(line, &mut numbers);
            whole.word(hash);
            if let Some(bucket) = least.get_mut((hash % BUCKETS as u64) as usize) {
                *bucket = (*bucket).min((hash >> 32) as u32);
            }
        }
    }
    whole.bytes(middle);
    // A byte of each bucket; 0 is an empty one.
    let byte = |least: u32| if least == u32::MAX { 0 } else { (least as u8).max(1) };
    Masked { hash: whole.half(), sketch: least.map(byte), numbers: numbers.short() }
}

/// Returns whether two sketches are of texts most of whose lines are the same.
pub fn are_alike(left: [u8; BUCKETS], right: [u8; BUCKETS]) -> bool {
    let pairs = || left.into_iter().zip(right);
    let all = pairs().filter(|(left, right)| left | right != 0).count();
    let same = pairs().filter(|(left, right)| left == right && *left != 0).count();
    same > 0 && same * 10 >= all * 7
}

/// Returns the hash of a line without its volatile parts, and adds the numbers and ids among them to another hash.
fn line_hash(line: &[u8], numbers: &mut Mix) -> u64 {
    let (mut mix, mut from, mut at) = (Mix::default(), 0, 0);
    while let Some(digit) = line.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)).map(|digit| at + digit) {
        let start = token_start(line, from, digit);
        let end = token_end(line, digit);
        let Some(volatile_end) = volatile_end(line, start, end) else {
            at = end;
            continue;
        };
        mix.bytes(line.get(from..start).unwrap_or_default());
        mix.byte(b'#');
        // Dates and times go on behind their first digits, and durations end with their unit.
        let volatile = line.get(start..volatile_end).unwrap_or_default();
        let is_id = line.get(start..end).unwrap_or_default().iter().any(u8::is_ascii_alphabetic);
        if (is_id || volatile_end == end) && volatile.len() >= NUMBER_BYTES_MIN && volatile.last() != Some(&b's') {
            numbers.bytes(volatile);
        }
        (from, at) = (volatile_end, volatile_end);
    }
    mix.bytes(line.get(from..).unwrap_or_default());
    mix.value()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn token_start(line: &[u8], from: usize, at: usize) -> usize {
    let before = line.get(from..at).unwrap_or_default();
    at - before.iter().rev().take_while(|byte| is_token(**byte)).count()
}

fn token_end(line: &[u8], at: usize) -> usize {
    at + line.get(at..).unwrap_or_default().iter().take_while(|byte| is_token(**byte)).count()
}

/// Returns where the volatile part ends that begins with this token; `None` where it is none.
fn volatile_end(line: &[u8], start: usize, end: usize) -> Option<usize> {
    let token = line.get(start..end)?;
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_number = digits == token.len();
    let is_hex = token.iter().all(u8::is_ascii_hexdigit);
    let is_id = (is_hex && token.len() >= 8) || token.starts_with(b"0x") || (token.len() >= 20 && digits < token.len());
    let next = line.get(end).copied();
    let is_time = is_number && digits <= 2 && next == Some(b':') && line.get(end + 1..end + 3)?.iter().all(u8::is_ascii_digit);
    if is_id || is_time || (is_number && digits >= 4) {
        return Some(run_end(line, end));
    }
    let before = line.get(..start).unwrap_or_default();
    if is_number && (is_behind_line(before) || is_behind_duration(before)) {
        return Some(fraction_end(line, end));
    }
    duration_end(line, start, digits)
}

/// Returns where a run ends that goes on with separators and tokens that hold digits: dates, times, UUIDs.
fn run_end(line: &[u8], mut end: usize) -> usize {
    while line.get(end).is_some_and(|byte| b":-.,+TZ".contains(byte)) {
        let next = token_end(line, end + 1);
        let has_digit = line.get(end + 1..next).is_some_and(|token| token.iter().any(u8::is_ascii_digit));
        if !has_digit {
            break;
        }
        end = next;
    }
    end
}

/// Returns where a duration ends, such as `0.12s`, `350ms` or `2 seconds`.
fn duration_end(line: &[u8], start: usize, digits: usize) -> Option<usize> {
    let at = fraction_end(line, start + digits);
    let (at, units): (usize, &[&[u8]]) = match line.get(at) {
        Some(b' ') => (at + 1, &[b"ms", b"seconds", b"second", b"secs", b"sec", b"minutes"]),
        _ => (at, &[b"ms", b"s", b"us", b"ns", b"sec", b"secs", b"m"]),
    };
    let end = token_end(line, at);
    let unit = line.get(at..end)?;
    (digits > 0 && units.contains(&unit)).then_some(end)
}

/// Returns where a number ends whose whole part ends here.
fn fraction_end(line: &[u8], whole: usize) -> usize {
    let fraction = line.get(whole + 1..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    if line.get(whole) == Some(&b'.') && fraction > 0 { whole + 1 + fraction } else { whole }
}

/// The names of members that hold a duration, and how such names end.
const DURATIONS: [&[u8]; 8] = [b"took", b"elapsed", b"duration", b"seconds", b"_ms", b"millis", b"latency", b"TimeMS"];

/// Returns whether the name of a member that holds a duration stands before a number, as in `"took": 12`.
fn is_behind_duration(before: &[u8]) -> bool {
    let Some(name) = before.trim_ascii_end().strip_suffix(b"\":") else { return false };
    DURATIONS.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether what stands before a number says that it is the number of a line.
fn is_behind_line(before: &[u8]) -> bool {
    before.last_chunk::<5>().is_some_and(|last| last.eq_ignore_ascii_case(b"line "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> u32 {
        masked(text.as_bytes()).hash
    }

    #[test]
    fn what_changes_from_run_to_run_is_left_out() {
        for (left, right) in [
            ("at 0x7ffe12 in f", "at 0x55aa90 in f"),
            ("bash: line 12: x", "bash: line 7: x"),
            ("2026-01-02 10:11:12 up", "2027-11-30 23:59:01 up"),
            ("2026-01-02T10:11:12.345Z up", "2026-01-02T10:11:13.001Z up"),
            ("3 passed in 0.12s", "3 passed in 1.5s"),
            ("took 350ms", "took 12ms"),
            (r#"{"took": 3, "hits": 1}"#, r#"{"took": 14, "hits": 1}"#),
            (r#"{"output":"a","duration_seconds":0.3}"#, r#"{"output":"a","duration_seconds":1.25}"#),
            ("waited 2 seconds", "waited 11 seconds"),
            ("pid 48211", "pid 1999"),
            ("id 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "id 6fa459ea-ee8a-3ca4-894e-db77e160355e"),
            ("commit 3f9d2c1ab", "commit 9a8b7c6d5"),
        ] {
            assert_eq!(hash(left), hash(right), "{left} {right}");
        }
    }

    #[test]
    fn what_is_news_stays() {
        for (left, right) in [
            ("3 failed", "2 failed"),
            ("page 1 of 9", "page 2 of 9"),
            ("room 101", "room 102"),
            ("a", "b"),
            ("step 1: done", "step 2: done"),
            ("v1.2", "v1.3"),
            ("", "x"),
        ] {
            assert_ne!(hash(left), hash(right), "{left} {right}");
        }
    }

    #[test]
    fn numbers_and_ids_are_told_apart_though_they_are_left_out() {
        let numbers = |text: &str| masked(text.as_bytes()).numbers;
        for (left, right) in
            [("48211 rows", "51977 rows"), ("id 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "id 1b4e28ba-2fa1-11d2-883f-0016d3cca428")]
        {
            assert_ne!(numbers(left), numbers(right), "{left} {right}");
        }
        for (left, right) in [("2026-01-02T10:11:12Z up", "2026-01-02T10:11:13Z up"), ("took 1350ms", "took 2200ms")] {
            assert_eq!(numbers(left), numbers(right), "{left} {right}");
        }
    }

    #[test]
    fn the_middle_of_a_long_text_counts_byte_for_byte() {
        let text = |middle: &str| format!("{}{middle}{}", "a\n".repeat(HEAD_BYTES), "b\n".repeat(TAIL_BYTES));
        assert_eq!(hash(&text("pid 48211")), hash(&text("pid 48211")));
        assert_ne!(hash(&text("pid 48211")), hash(&text("pid 1999")));
    }

    #[test]
    fn sketches_tell_alike_texts_from_others() {
        let lines = |range: std::ops::Range<u32>| range.map(|number| format!("the line called {number}\n")).collect::<String>();
        let sketch = |text: &str| masked(text.as_bytes()).sketch;
        assert!(are_alike(sketch(&lines(0..40)), sketch(&lines(0..41))));
        assert!(!are_alike(sketch(&lines(0..40)), sketch(&lines(100..140))));
        assert!(!are_alike(sketch(""), sketch("")), "nothing is like nothing");
    }
}

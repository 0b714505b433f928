//! `printf`, in shells a builtin.
//!
//! Left out: `-v` (sets), `%n`, `%b`, `%q`, `%(…)T`, `*` for a width, and numbers that are not decimal: some shells evaluate them as
//! arithmetic. Of the escapes only those that stand for one character, so that none stands for `%`.

use super::reading::{COMPUTED, MISSING, OPERAND};
use super::shell::is_decimal;
use super::{Started, Unlisted};
use crate::argument::Argument;

pub(super) fn printf(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let index = usize::from(arguments.first().and_then(Argument::as_known) == Some("--"));
    let format = arguments.get(index).ok_or(Unlisted { index, what: MISSING })?;
    let format = format.as_known().ok_or(Unlisted { index, what: COMPUTED })?;
    if index == 0 && format.starts_with('-') {
        return Err(Unlisted { index, what: OPERAND });
    }
    let conversions = conversions(format).ok_or(Unlisted { index, what: OPERAND })?;
    if !conversions.contains(&'d') {
        return Ok(Vec::new());
    }
    let rest = arguments.iter().enumerate().skip(index + 1);
    for ((index, argument), conversion) in rest.zip(conversions.iter().cycle()) {
        let is_number = *conversion == 's' || argument.as_known().is_some_and(|text| text.is_empty() || is_decimal(text));
        if argument.many || !is_number {
            return Err(Unlisted { index, what: OPERAND });
        }
    }
    Ok(Vec::new())
}

/// Returns what the format does with its arguments: `s` takes a text, `d` a number.
fn conversions(format: &str) -> Option<Vec<char>> {
    let mut found = Vec::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                'n' | 't' | 'r' | 'a' | 'b' | 'f' | 'v' | '\\' | '"' | '\'' => {}
                // The escape character, before a colour.
                '0' => "33".chars().try_for_each(|digit| chars.next_if_eq(&digit).map(drop))?,
                _ => return None,
            },
            '%' => {
                if chars.next_if_eq(&'%').is_some() {
                    continue;
                }
                while chars.next_if(|c| matches!(c, '-' | '.' | '0'..='9')).is_some() {}
                match chars.next()? {
                    's' => found.push('s'),
                    'd' | 'i' | 'u' | 'x' | 'o' => found.push('d'),
                    _ => return None,
                }
            }
            _ => {}
        }
    }
    Some(found)
}

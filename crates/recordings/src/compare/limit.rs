//! `--fail-on`: limits of what may differ, for a build that tries a policy.

use std::str::FromStr;

use tollgate_core::decide::ruling::Action;

use super::tally::Tally;

const FIX: &str = "write FROM->TO>LIMIT with actions or *, such as 'allow->block>0.1%', or flips>LIMIT, or refused>LIMIT, or \
                   cut_off>LIMIT, or suspended>LIMIT; a limit is a count or a percentage of all verdicts, and of all calls for suspended";

/// A limit of what may differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    text: String,
    what: Counted,
    most: Maximum,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Differences from an action to an action; `None` is any.
    Change(Option<Action>, Option<Action>),
    /// Calls that succeeded and would have been refused.
    Refused,
    /// Calls that succeeded and would have been cut off.
    CutOff,
    /// Calls that a suspension blocks on the second side and not on the first.
    Suspended,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Maximum {
    Count(u64),
    /// Of all verdicts or calls, in millionths of a per cent: a binary fraction would miss some limits by a hair.
    Percent(u128),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, most) =
            text.rsplit_once('>').filter(|(what, _)| !what.ends_with('-')).ok_or_else(|| format!("found no limit; {FIX}"))?;
        let (what, most) = (what.trim(), most.trim());
        let what = match what {
            "flips" => Counted::Change(None, None),
            "refused" => Counted::Refused,
            "cut_off" => Counted::CutOff,
            "suspended" => Counted::Suspended,
            change => {
                let (from, to) = change.split_once("->").ok_or_else(|| format!("found no change; {FIX}"))?;
                Counted::Change(action(from.trim())?, action(to.trim())?)
            }
        };
        Ok(Self { text: text.to_owned(), what, most: most_of(most)? })
    }
}

fn action(name: &str) -> Result<Option<Action>, String> {
    if name == "*" {
        return Ok(None);
    }
    let found = Action::ALL.iter().copied().find(|action| action.as_str() == name);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
        format!("found an action that there is not; the actions are {}, and * is any", names.join(", "))
    })
}

fn most_of(text: &str) -> Result<Maximum, String> {
    match text.strip_suffix('%').map(|number| micro_percent(number.trim_end())) {
        Some(Some(percent)) => Ok(Maximum::Percent(percent)),
        Some(None) => Err(format!("found a percentage that is not between 0 and 100; {FIX}")),
        None if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("found a limit that is no whole number and no percentage; {FIX}"))
        }
        None => text.parse().map(Maximum::Count).map_err(|_| format!("found a limit that is no whole number and no percentage; {FIX}")),
    }
}

/// Reads a decimal number from 0 to 100 in millionths, with at most six digits behind the point.
fn micro_percent(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |digits: &str, most: usize| (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole, 3) || !are_digits(fraction, 6) {
        return None;
    }
    let micro = format!("{whole}{fraction:0<6}").parse().ok()?;
    (micro <= 100_000_000).then_some(micro)
}

impl Limit {
    /// Returns whether the limit is one of what suspensions by rules block.
    pub fn is_of_suspensions(&self) -> bool {
        self.what == Counted::Suspended
    }

    /// Returns what is wrong if more differs than the limit allows.
    pub(super) fn exceeded(&self, tally: &Tally) -> Option<String> {
        let found = match self.what {
            Counted::Refused => tally.lost.refused,
            Counted::CutOff => tally.lost.calls,
            Counted::Suspended => tally.abuse.as_ref().map_or(0, |abuse| abuse.suspended),
            Counted::Change(from, to) => {
                let fits = |wanted: Option<Action>, action| wanted.is_none_or(|wanted| wanted == action);
                let changes = tally.changes.iter().filter(|((a, b), _)| fits(from, a.action) && fits(to, b.action));
                changes.map(|(_, change)| change.flips).sum()
            }
        };
        let (all, of) = match self.what {
            Counted::Suspended => (tally.abuse.as_ref().map_or(0, |abuse| abuse.calls), "calls"),
            Counted::Change(..) | Counted::CutOff | Counted::Refused => (tally.total.verdicts, "verdicts"),
        };
        let is_exceeded = match self.most {
            Maximum::Count(most) => found > most,
            Maximum::Percent(micro) => u128::from(found) * 100_000_000 > micro * u128::from(all),
        };
        is_exceeded.then(|| format!("--fail-on '{}': found {found} of {all} {of}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::flip::{Facts, Side};
    use super::*;
    use tollgate_core::decide::ruling::DecidedBy;

    fn tally(blocked: u64, of: u64) -> Tally {
        let side = |action, code: &'static str| Side { action, code: code.into(), decided_by: DecidedBy::None };
        let mut tally = Tally::default();
        for at in 0..of {
            let to = if at < blocked { side(Action::Block, "tool_denied") } else { side(Action::Allow, "allow") };
            tally.note(&Facts::default(), &side(Action::Allow, "allow"), &to);
        }
        tally
    }

    #[test]
    fn a_limit_is_a_count_or_a_share() {
        for (text, blocked, is_exceeded) in [
            ("allow->block>0.1%", 2, true),
            ("allow->block>0.1%", 1, false),
            ("allow -> block > 1", 2, true),
            ("allow->block>2", 2, false),
            ("*->block>0", 1, true),
            ("*->*>0", 1, true),
            ("flips>0", 0, false),
            ("flips>0", 1, true),
            ("block->allow>0", 5, false),
            ("*->halt>0", 5, false),
            ("cut_off>0", 5, false),
            ("refused>0", 5, false),
            // 0.7 times 1,000 is a little less in binary fractions.
            ("flips>0.7%", 7, false),
            ("flips > 0.700001 %", 8, true),
            ("flips>100%", 1_000, false),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!(limit.exceeded(&tally(blocked, 1_000)).is_some(), is_exceeded, "{text} {blocked}");
        }
    }

    #[test]
    fn a_limit_of_suspensions_is_a_share_of_calls() {
        let abuse = super::super::suspended::Suspensions { calls: 1_000, suspended: 2, ..Default::default() };
        let tally = Tally { abuse: Some(abuse), ..tally(0, 1_000_000) };
        for (text, is_exceeded) in [("suspended>0.1%", true), ("suspended>0.2%", false), ("suspended>1", true), ("flips>0", false)] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!((limit.exceeded(&tally).is_some(), limit.is_of_suspensions()), (is_exceeded, text.starts_with('s')), "{text}");
        }
        let limit: Limit = "suspended>0".parse().unwrap();
        assert_eq!(limit.exceeded(&tally).unwrap(), "--fail-on 'suspended>0': found 2 of 1000 calls");
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in [
            "",
            "allow->block",
            "allow>1",
            "allow->blocked>1",
            "allow->block>x",
            "allow->block>-1",
            "allow->block>101%",
            "->>1",
            "flips",
            "flips>5 7",
            "f lips>1",
            "flips>+57",
            "flips>-0%",
            "flips>1.2345678%",
            "flips>.5%",
        ] {
            let error = text.parse::<Limit>().unwrap_err();
            assert!(error.contains("found "), "{text}: {error}");
        }
    }
}

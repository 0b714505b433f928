//! Fuzzes passports, calls that are examined under them, and the schema checker.

use std::sync::OnceLock;

use tollgate_json::{DEPTH_MAX, Parser, Text, canonical};
use tollgate_passport::ToolInput;
use tollgate_passport::{Call, Outcome, Passport, PassportFault, Report, Terms, UnenforcedLimits, check_schema, examine};

use crate::SECRET;
use crate::head::Head;

/// Checks a call under a passport: the lines are `tool: …`, `time_ms: …` and `arguments: …` (a JSON text), and the rest is the passport.
pub fn check(input: &[u8]) {
    let head = Head::read(input);
    let tool = String::from_utf8_lossy(head.values("tool").last().unwrap_or(b"bash")).into_owned();
    let time_ms = head.values("time_ms").last().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let arguments = head.values("arguments").last();
    let passport = Passport::read(head.rest);
    check_reading(head.rest, &passport);
    let call = Spelled { tool: &tool, time_ms, arguments };
    for terms in [terms(UnenforcedLimits::Deny), terms(UnenforcedLimits::Ignore)] {
        let outcomes = examined(&passport, terms, &call);
        assert_eq!(examined(&passport, terms, &call), outcomes, "a call is examined with another outcome the second time");
        if contains(arguments.unwrap_or_default(), SECRET) && !contains(head.rest, SECRET) && !tool.contains(SECRET) {
            let repeats = |outcome: &(String, Outcome)| format!("{outcome:?}").contains(SECRET);
            assert!(!outcomes.iter().any(repeats), "a denial repeats an argument");
        }
    }
}

fn terms(unenforced_limits: UnenforcedLimits) -> &'static Terms {
    static TERMS: OnceLock<[Terms; 2]> = OnceLock::new();
    let both =
        || [UnenforcedLimits::Deny, UnenforcedLimits::Ignore].map(|unenforced_limits| Terms { unenforced_limits, ..Terms::default() });
    let [deny, ignore] = TERMS.get_or_init(both);
    if unenforced_limits == UnenforcedLimits::Deny { deny } else { ignore }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Checks that a text is a passport for evaluation and for the schema checker alike, and the same one in its canonical form.
fn check_reading(text: &[u8], passport: &Result<Passport, PassportFault>) {
    let faults = check_schema(text);
    assert_eq!(check_schema(text), faults, "the schema checker finds something else the second time");
    assert_eq!(faults.as_ref().err(), passport.as_ref().err(), "the schema checker and evaluation disagree");
    let Ok(passport) = passport else { return };
    let mut parser = Parser::new();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let value = parser.parse(text, DEPTH_MAX).unwrap_or_else(|error| panic!("a passport is not JSON: {error}"));
    let mut canonical = Vec::new();
    canonical::write_jcs(value, &mut canonical);
    let again = Passport::read(&canonical).unwrap_or_else(|error| panic!("a canonical passport cannot be read: {error}"));
    assert_eq!(again.digest, passport.digest, "a canonical passport is another one");
}

/// A call as the input writes it.
struct Spelled<'i> {
    tool: &'i str,
    time_ms: Option<i64>,
    arguments: Option<&'i [u8]>,
}

/// The outcomes of the checks, in order, each under its name.
#[derive(Default)]
struct Outcomes(Vec<(String, Outcome)>);

impl Report for Outcomes {
    fn outcome(&mut self, check: &'static str, outcome: Outcome) {
        self.0.push((check.to_owned(), outcome));
    }
}

fn examined(passport: &Result<Passport, PassportFault>, terms: &Terms, spelled: &Spelled<'_>) -> Vec<(String, Outcome)> {
    let mut parser = Parser::new();
    let text = spelled.arguments.map(Text::plain);
    let encoded = text.map_or(ToolInput::Absent { null: false }, ToolInput::Encoded);
    let by = |input: &ToolInput<'_>| {
        let call = Call { tool_name: spelled.tool, input, time_ms: spelled.time_ms, earliest_ms: spelled.time_ms };
        let mut outcomes = Outcomes::default();
        examine(Some(passport.as_ref()), terms, &call, &mut outcomes);
        outcomes.0
    };
    let outcomes = by(&encoded);
    // Arguments are the same whether they come as a text or as a value.
    let value = spelled.arguments.and_then(|text| parser.parse(text, DEPTH_MAX).ok());
    if let Some(value) = value.filter(|value| !value.is_null()) {
        assert_eq!(by(&ToolInput::Value(value)), outcomes, "arguments as a value are examined with another outcome");
    }
    outcomes
}

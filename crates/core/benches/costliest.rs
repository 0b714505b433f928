//! Searches for the costliest calls that a passport decides on, and compares them with ordinary calls of their size.
//!
//! A call holds a text of a few pieces, each repeated, and the whole repeated until the text has its size. The search changes the pieces of
//! the costliest calls so far, and keeps what costs more of the processor's time.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_fixtures::measure::{Table, processor_time, rounded};
use tollgate_json::Text;
use tollgate_passport::{Call, Outcome, Passport, Report, Terms, ToolInput, examine};

/// How many times an ordinary call's cost the costliest call may cost.
const RATIO_MAX: f64 = 100.0;
/// The sizes of the texts, in bytes.
const SIZES: [usize; 3] = [1 << 10, 16 << 10, 60 << 10];
/// How many calls are kept to make others of them.
const KEPT: usize = 12;
/// The most pieces of a text before it is repeated.
const PIECES_MAX: usize = 10;
/// The passports that calls are decided by.
const PASSPORTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/attacks/passports.json");

/// What costs may come from: grammar, globs, places, and programs with operands of their own.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    " ", "\n", ";", " | ", " && ", " & ", "(", ")", "{ ", "; }", "$(", "`", "\"", "'", "\\", "$x", "${x}", "x=y ", "$((1+", "))", "#", "*",
    "**/", "?", "[a-z]", "[!a]", "{a,b}", "{1..9}", "*/", "a", "b/", "../", "./", "/", "~", "~/", ".", ".*", "-", "--", "-a", "=", "@", ":",
    ",", "%", "!", "0", "é", "//", "/etc/passwd", ".env", "/workspace/", "src/", "a*", "*a", "*.p?", ".e*", "/*/", "cd ", "cd a*; ",
    "cd *; ", "cd ..; ", "cat ", "cat * ", "ls ", "find ", "find . -name '", "find * -exec cat {} + ", "-name ", "-exec ", "-o ", "grep ",
    "grep -r a ", "rg -g '*' ", "sed 's/a/b/' ", "sed -i ", "jq '.a|", "awk '{", "xargs ", "tee ", "git ", "git -C * ", "git log a..b ",
    "git mv * ", "cp * ", "mv a* b*; ", "rm ", "ln -s * ", "tar xf ", "env a=b ", "timeout 1 ", "test ", "[ ", "[[ ", "if ", "then ",
    "fi\n", "for i in ", "do ", "done\n", "case ", " in ", ") ", ";; ", "esac\n", "while ", "f() ", "> ", ">> ", "< ", "2>&1 ", "<<E\n",
    "\nE\n", "<<< ", "<(", "export ", "echo ", "printf ", "printf '%s' ", "make ", "cargo test ", "kubectl get ", "https://", "a.b/",
    "user@", "http://[", "%2e", "%25", "\u{2024}", "\u{ff0f}",
];

type Genes = Vec<(&'static str, usize)>;

/// A tool with a text among its arguments, and who may use it.
struct Case {
    name: &'static str,
    passport: &'static str,
    tool: &'static str,
    argument: &'static str,
    ordinary: &'static str,
}

const CASES: [Case; 4] = [
    Case { name: "commands", passport: "two_coder", tool: "bash", argument: "command", ordinary: "echo 'a text of words' > src/a.txt\n" },
    Case { name: "tables", passport: "two_tables", tool: "bash", argument: "command", ordinary: "echo 'a text of words' > src/a.txt\n" },
    Case { name: "paths", passport: "two_coder", tool: "read_file", argument: "file_path", ordinary: "src/main/a-folder/" },
    Case { name: "unknown", passport: "two_coder", tool: "read_file", argument: "note", ordinary: "a text about a file. " },
];

struct Nothing;

impl Report for Nothing {
    fn outcome(&mut self, _: &'static str, outcome: Outcome) {
        std::hint::black_box(&outcome);
    }
}

impl Case {
    /// Returns the least time of some runs: what else the machine does makes some of them longer, and none of them shorter.
    fn least(&self, passport: &Passport, text: &str, times: usize) -> Duration {
        let input = json!({self.argument: text}).to_string();
        let input = ToolInput::Encoded(Text::plain(input.as_bytes()));
        let call = Call { tool_name: self.tool, input: &input, time_ms: Some(1_800_000_000_000), earliest_ms: None };
        let run = || {
            let started = processor_time();
            examine(Some(Ok(passport)), &Terms::default(), &call, &mut Nothing);
            processor_time() - started
        };
        (0..times).map(|_| run()).min().unwrap()
    }

    /// Returns the costliest pieces that are found with so many tries.
    fn search(&self, passport: &Passport, size: usize, tries: usize) -> Genes {
        let mut random = fastrand::Rng::with_seed(size as u64);
        let plain = PIECES.iter().map(|piece| vec![(*piece, 1), ("a ", 1)]);
        let mut kept: Vec<(Duration, Genes)> = plain.map(|genes| (self.least(passport, &text(&genes, size), 1), genes)).collect();
        for _ in 0..tries {
            kept.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
            kept.truncate(KEPT);
            let genes = mutated(&kept, &mut random);
            let made = text(&genes, size);
            if self.least(passport, &made, 1) > kept[kept.len() - 1].0 {
                kept.push((self.least(passport, &made, 3), genes));
            }
        }
        kept.into_iter().max_by_key(|(_, genes)| self.least(passport, &text(genes, size), 3)).unwrap().1
    }
}

/// Returns a text of a size.
fn text(genes: &[(&str, usize)], size: usize) -> String {
    let once: String = genes.iter().map(|(piece, times)| piece.repeat(*times)).collect();
    let mut text = once.repeat(size / once.len().max(1) + 1);
    let end = (0..=size).rev().find(|end| text.is_char_boundary(*end)).unwrap();
    text.truncate(end);
    text
}

fn mutated(kept: &[(Duration, Genes)], random: &mut fastrand::Rng) -> Genes {
    let mut genes = kept[random.usize(..kept.len())].1.clone();
    for _ in 0..=random.usize(..3) {
        let (at, piece) = (random.usize(..genes.len()), PIECES[random.usize(..PIECES.len())]);
        match random.u8(..6) {
            0 | 1 if genes.len() < PIECES_MAX => genes.insert(at, (piece, 1)),
            2 if genes.len() > 1 => _ = genes.remove(at),
            3 => genes[at].1 = (genes[at].1 * 2).min(1 << 14),
            4 => genes[at].1 = genes[at].1.div_ceil(2),
            _ => genes[at] = (piece, 1 << random.u8(..9)),
        }
    }
    genes
}

pub(super) fn measure(mut table: Table, tries: usize) {
    let passports: Value = serde_json::from_slice(&std::fs::read(PASSPORTS).unwrap()).unwrap();
    let mut worst: f64 = 0.0;
    for case in &CASES {
        let passport = Passport::read(passports[case.passport].to_string().as_bytes()).unwrap();
        for size in SIZES {
            let genes = case.search(&passport, size, tries);
            // Whole lines: half of the last one would make the text another, which is refused at once.
            let ordinary = case.ordinary.repeat(size / case.ordinary.len());
            let [costliest, ordinary] = [text(&genes, size), ordinary].map(|text| case.least(&passport, &text, 5).as_secs_f64() * 1e6);
            let ratio = costliest / ordinary;
            worst = worst.max(ratio);
            table.row([
                ("call", format!("{}, {} KiB", case.name, size >> 10).into()),
                ("costliest_us", rounded(costliest, 0).into()),
                ("ordinary_us", rounded(ordinary, 0).into()),
                ("ratio", rounded(ratio, 1).into()),
                ("pieces", format!("{genes:?}").into()),
            ]);
        }
    }
    table.end_with_target("at most 100 ordinary calls", worst <= RATIO_MAX);
}

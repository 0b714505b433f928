//! Counts the instructions of a decision by valgrind's callgrind: the number to compare over time, since a busy machine does not change it.
//!
//! Every row of `decision` runs twice in a process of its own under callgrind, once with half of its events and once with all of them; the
//! difference, divided by the number of events in it, leaves out start-up and the prelude.
//!
//! The count differs from what runs without valgrind, which presents a processor with AVX2 but without the SHA extensions (and without
//! AVX-512). There `sha2`, which chooses at run time, takes its portable code: hashing a block of 64 bytes takes thousands of instructions,
//! where the extensions need a few dozen. The last column says how much of a row that is, from the profile itself. The rest of a row is
//! the cost of the gate without hashing, which can be compared between two machines.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tollgate_fixtures::events::rows::ROWS;
use tollgate_fixtures::measure::{Table, rounded};

/// The beginning of the names of hashing functions in a profile.
const HASHING: &str = "sha2::";

pub fn measure(mut table: Table) {
    for (at, make) in ROWS.iter().enumerate() {
        let row = make();
        let (half, all) = (row.measured.len() / 2, row.measured.len());
        let (few, many) = (count(at, half), count(at, all));
        let per_event = |few: u64, many: u64| rounded(many.saturating_sub(few) as f64 / (all - half) as f64, 1);
        table.row([
            ("name", json!(row.name)),
            ("per_event", json!(per_event(few.total, many.total))),
            ("of_it_sha256", json!(per_event(few.hashing, many.hashing))),
        ]);
    }
    table.end();
}

/// Decides on so many events of a row. Both runs make all of them, so that making them cancels out.
pub fn run(row: usize, events: usize) {
    let row = ROWS[row]();
    let mut feed = row.prepare();
    feed.apply_all(&row.measured[..events]);
}

/// The instructions of a whole process.
struct Count {
    total: u64,
    hashing: u64,
}

fn count(row: usize, events: usize) -> Count {
    let profile = std::env::temp_dir().join(format!("tollgate-instructions-{}", std::process::id()));
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe().expect("this program"))
        .args(["instructions", "--run", &row.to_string(), &events.to_string()])
        .output()
        .expect("valgrind is installed");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let count = read(&profile);
    std::fs::remove_file(&profile).expect("the profile can be removed");
    count
}

/// Adds up a profile. A line that begins with a place (a number, `+`, `-` or `*`) ends in the instructions spent there; a line behind
/// `calls=` is about the callee, which has lines of its own. `fn=` names the function of the lines behind it: by a number, and the first
/// time with its name.
fn read(profile: &Path) -> Count {
    let text = std::fs::read_to_string(profile).expect("callgrind has written a profile");
    let mut names = std::collections::HashMap::new();
    let (mut count, mut is_hashing, mut is_of_callee) = (Count { total: 0, hashing: 0 }, false, false);
    for line in text.lines() {
        if let Some((kind, name)) = line.split_once('=').filter(|(kind, _)| matches!(*kind, "fn" | "cfn")) {
            let (number, name) = name.split_once(' ').unwrap_or((name, ""));
            if !name.is_empty() {
                names.insert(number.to_owned(), name.contains(HASHING));
            }
            if kind == "fn" {
                is_hashing = names[number];
            }
        } else if line.starts_with("calls=") {
            is_of_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '*')) {
            let spent: u64 = line.split_whitespace().nth(1).and_then(|spent| spent.parse().ok()).unwrap_or_default();
            if !std::mem::take(&mut is_of_callee) {
                count.total += spent;
                count.hashing += if is_hashing { spent } else { 0 };
            }
        }
    }
    let said = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("a profile ends in its total");
    assert_eq!(count.total.to_string(), said.trim(), "the profile is not read as it is meant");
    count
}

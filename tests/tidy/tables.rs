//! Checks the tables of documents, and what is written from tables: the pages on topics and metrics, and the default names of topics.
//!
//! `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- tidy` writes them anew.

use std::path::Path;

use tollgate_config::topics::{BEGIN, END, TOPICS, tables};
use tollgate_worker::metrics::{CATALOG, Kind};

use super::{assert_none, documents, read};
use crate::support::{run, tollgate};

/// Compares a file with the wanted text; writes it where that is asked for.
fn check_written(path: &str, wanted: &str) {
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        std::fs::write(path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let differs = wanted.lines().zip(found.lines()).position(|(wanted, found)| wanted != found);
    let line = differs.unwrap_or_else(|| wanted.lines().count().min(found.lines().count())) + 1;
    assert!(
        found == wanted,
        "{path} is stale from line {line} on; `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- tidy` writes it anew"
    );
}

#[test]
fn the_page_on_metrics_is_the_list() {
    check_written("docs/metrics.md", &tollgate_worker::metrics::page(CATALOG));
}

#[test]
fn the_page_on_safety_stops_is_that_of_the_readers() {
    check_written("docs/safety-stops.md", &tollgate_core::decide::safety::reading::page());
}

#[test]
fn the_page_on_topics_has_the_tables() {
    let path = "docs/topics.md";
    let text = read(Path::new(path));
    let (before, rest) = text.split_once(BEGIN).expect("the line before the tables");
    let (_, after) = rest.split_once(END).expect("the line behind the tables");
    check_written(path, &format!("{before}{BEGIN}\n\n{}\n{END}{after}", tables(TOPICS)));
}

#[test]
fn the_default_names_of_topics_are_those_of_the_table() {
    let path = "config/tollgate.yaml";
    let text = read(Path::new(path));
    let (before, rest) = text.split_once("  topics:\n").expect("kafka.topics");
    let after: String = rest.lines().skip_while(|line| line.starts_with("    ")).map(|line| format!("{line}\n")).collect();
    check_written(path, &format!("{before}  topics:\n{}{after}", tollgate_config::topics::defaults(TOPICS)));
}

#[test]
fn the_table_of_failover_properties_is_that_of_the_clients() {
    let path = "docs/availability.md";
    let text = read(Path::new(path));
    let place = "`kafka.properties` overrides each.\n\n";
    let (before, rest) = text.split_once(place).expect("the place of the table");
    let after: Vec<_> = rest.lines().skip_while(|line| line.starts_with('|')).collect();
    let after = after.join("\n");
    let after = after.trim_start();
    check_written(path, &format!("{before}{place}{}\n{after}\n", tollgate_worker::kafka::failover_table()));
}

/// Returns a name that looks like a metric's: in backticks, without labels and the suffixes of histograms.
fn metric_names(text: &str) -> impl Iterator<Item = &str> {
    let codes = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let names = codes.filter(|code| code.starts_with("tollgate_")).map(|code| code.split('{').next().unwrap_or(code));
    let names = names.map(|name| ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name));
    // The crates' names begin alike.
    names.filter(|name| !["tollgate_core", "tollgate_testkit", "tollgate_bench"].contains(name) && !name.contains("::"))
}

#[test]
fn no_document_names_a_metric_that_is_not_there() {
    let (mut named, mut offenders) = (0, Vec::new());
    for document in documents() {
        for name in metric_names(&read(&document)) {
            named += 1;
            if !CATALOG.iter().any(|metric| metric.name == name) {
                offenders.push(format!("{}: {name}", document.display()));
            }
        }
    }
    assert!(named >= CATALOG.len(), "only {named} names were found");
    assert_none("a metric that a document names exists", &offenders);
}

#[test]
fn metric_names_are_found() {
    let text =
        "`tollgate_a_total`, `tollgate_b_seconds_bucket{le=\"1\"}`, tollgate_c and `tollgate_core` and `tollgate_core::decide::gate`";
    assert_eq!(metric_names(text).collect::<Vec<_>>(), ["tollgate_a_total", "tollgate_b_seconds"]);
}

#[test]
fn metrics_are_named_as_prometheus_likes_them() {
    let mut offenders = Vec::new();
    for metric in CATALOG {
        let is_counter = matches!(metric.kind, Kind::Counter);
        let is_plain = metric.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !metric.name.starts_with("tollgate_") || is_counter != metric.name.ends_with("_total") || !is_plain || metric.help.is_empty() {
            offenders.push(metric.name.to_owned());
        }
        offenders.extend(
            metric
                .labels
                .iter()
                .filter(|label| label.contains("thread") || label.contains("user"))
                .map(|label| format!("{}: {label}", metric.name)),
        );
    }
    assert_none("a metric has a prefix, its counter's suffix, help, and no thread or user as a label", &offenders);
}

/// Returns what is wrong with the tables of a document: a table that begins without a head, that a line of text cuts, or of which a row has
/// another number of cells.
fn cut_tables(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut table: Vec<usize> = Vec::new();
    let mut is_code = false;
    let mut before = "";
    for (number, line) in text.lines().chain([""]).enumerate() {
        is_code ^= line.starts_with("```");
        if !is_code && line.starts_with('|') {
            let at = number + 1;
            match table.len() {
                0 if !before.is_empty() => faults.push(format!("line {at}: a table directly behind text")),
                1 if !line.chars().all(|letter| "|-: ".contains(letter)) => faults.push(format!("line {at}: the table has no head")),
                _ => {}
            }
            let cells = cells_of(line);
            if !line.ends_with('|') || table.first().is_some_and(|first| *first != cells) {
                faults.push(format!("line {at}: {cells} cells where the table has {}", table.first().unwrap_or(&cells)));
            }
            table.push(cells);
        } else {
            if !table.is_empty() && (table.len() < 3 || !line.is_empty()) {
                faults.push(format!("line {}: the table is cut off", number + 1));
            }
            table.clear();
        }
        before = line;
    }
    faults
}

/// Returns how many cells a row has. A bar divides cells, in code too, unless a backslash stands before it.
fn cells_of(line: &str) -> usize {
    line.replace("\\|", "").matches('|').count().saturating_sub(1)
}

#[test]
fn no_table_of_a_document_is_cut() {
    let faults = documents().into_iter().flat_map(|path| {
        let faults = cut_tables(&read(&path));
        faults.into_iter().map(move |fault| format!("{}: {fault}", path.display()))
    });
    assert_none("a table is shown as a table", &faults.collect::<Vec<_>>());
}

#[test]
fn cut_tables_are_found() {
    assert!(cut_tables("text\n\n| a | b |\n|---|---|\n| `x\\|y` | c\\|d |\n").is_empty());
    assert!(cut_tables("```\n| no table\n```\n").is_empty());
    for cut in [
        "| a |\n|---|\n| `b|c` |\n",
        "| a |\n|---|\n| b |\n\n| c |\n| d |\n",
        "| a |\n|---|\n| b | c |\n",
        "| a |\n|---|\n| b |\ntext\n",
        "text\n| a |\n|---|\n| b |\n",
    ] {
        assert!(!cut_tables(cut).is_empty(), "{cut}");
    }
}

/// Returns the commands that a help text lists.
fn commands_of(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[test]
fn every_command_has_a_row() {
    let page = read(Path::new("docs/configuration.md"));
    let help = run(tollgate().arg("--help"), b"").stdout;
    let commands = commands_of(&help);
    assert!(commands.len() > 15, "{commands:?}");
    let has_row = |name: &str| page.lines().any(|line| line.starts_with(&format!("| `tollgate {name}")));
    let missing: Vec<_> = commands.iter().filter(|name| !has_row(name)).map(|name| format!("tollgate {name}")).collect();
    assert_none("commands without a row in the table of docs/configuration.md; add a row that begins with the command", &missing);
}

#[test]
fn every_field_of_events_has_a_row_and_a_case() {
    let schema = tollgate_core::event::decode::schema();
    let fields: Vec<_> = schema["definitions"]["fields"]["properties"].as_object().unwrap().keys().cloned().collect();
    assert!(fields.len() > 15, "{fields:?}");
    let page = read(Path::new("docs/contract.md"));
    let cases = read(Path::new("crates/core/tests/fixtures/accepted.jsonl"));
    let is_in_a_row = |name: &str| page.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{name}`")));
    let missing: Vec<_> = fields.iter().filter(|name| !is_in_a_row(name)).cloned().collect();
    assert_none("fields of events without a row in docs/contract.md", &missing);
    let missing: Vec<_> = fields.iter().filter(|name| !cases.contains(&format!("\"{name}\""))).cloned().collect();
    assert_none("fields of events without a case in crates/core/tests/fixtures/accepted.jsonl", &missing);
}

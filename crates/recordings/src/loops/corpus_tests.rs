//! The corpus of conversations in `tests/corpus/loops`, under each preset.

use std::collections::BTreeMap;
use std::path::Path;

use super::{LoopReport, Row, Verdict, conversation};
use tollgate_core::event::decode::decode;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_json::Parser;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/loops");
/// The lap at which a loop has to be stopped: that of the sixth repetition.
const LAP_MAX: u32 = 7;

struct Corpus {
    report: LoopReport,
    labels: BTreeMap<String, Verdict>,
}

fn corpus() -> Corpus {
    let (mut report, mut labels) = (LoopReport::new().unwrap(), BTreeMap::new());
    for entry in std::fs::read_dir(Path::new(FOLDER)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let read = conversation(&std::fs::read_to_string(&path).unwrap(), &name).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        for event in &read.events {
            let record = Record {
                topic: "t",
                partition: Partition(0),
                offset: Offset(0),
                timestamp_ms: None,
                key: None,
                value: Some(event.as_bytes()),
                headers: &[],
            };
            report.note(&decode(&record, &mut Parser::new(), 1 << 20).unwrap());
        }
        labels.insert(name, read.verdict);
    }
    Corpus { report, labels }
}

fn row(corpus: &Corpus, preset: &str) -> Row {
    corpus.report.rows(&corpus.labels).into_iter().find(|row| row.preset == preset).unwrap()
}

#[test]
fn half_of_the_corpus_is_productive_and_no_conversation_stands_twice() {
    let corpus = corpus();
    let productive = corpus.labels.values().filter(|verdict| **verdict == Verdict::Productive).count();
    assert!(corpus.labels.len() >= 250 && productive * 2 >= corpus.labels.len(), "{productive} of {}", corpus.labels.len());
    let mut texts: Vec<_> =
        std::fs::read_dir(FOLDER).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    texts.sort();
    let all = texts.len();
    texts.dedup();
    assert_eq!(texts.len(), all);
}

#[test]
fn loops_are_stopped_by_their_sixth_repetition_and_nothing_productive_is_lost() {
    let corpus = corpus();
    let place = tollgate_core::decide::loops::PRESETS.iter().position(|(name, ..)| *name == "tollgate").unwrap();
    let (mut late, mut harmed, mut loops) = (Vec::new(), Vec::new(), 0);
    for thread in corpus.report.threads() {
        let outcome = thread.outcomes[place];
        match corpus.labels[&thread.thread_id] {
            Verdict::Loop => {
                loops += 1;
                if outcome.first_lap.is_none_or(|lap| lap > LAP_MAX || lap == 0) {
                    late.push((thread.thread_id, outcome.first_lap));
                }
            }
            Verdict::Productive if outcome.is_harmed() || outcome.halts > 0 => harmed.push((thread.thread_id, outcome)),
            Verdict::Productive | Verdict::SoftLoop => {}
        }
    }
    assert_eq!(harmed, []);
    assert!(late.len() * 100 <= loops, "{} of {loops}: {late:?}", late.len());
    let judged = row(&corpus, "tollgate").judged.unwrap();
    assert!(judged.soft_loops_found * 10 >= judged.soft_loops * 6, "{judged:?}");
}

/// What the table in README says has to be seen from here.
#[test]
fn the_preset_is_better_than_every_other() {
    let corpus = corpus();
    let ours = row(&corpus, "tollgate").judged.unwrap();
    for other in corpus.report.rows(&corpus.labels).iter().filter(|row| row.preset != "tollgate") {
        let judged = other.judged.unwrap();
        assert!(judged.loops_found < ours.loops_found, "{other:?}");
        assert!(judged.productive_harmed >= ours.productive_harmed, "{other:?}");
    }
}

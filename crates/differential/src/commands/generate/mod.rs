//! Making lines: from a grammar, and from lines that were allowed.

mod compound;
mod grammar;
mod mutate;
mod pool;
mod programs;
mod tabled;
mod words;

use fastrand::Rng;

use super::rules::RuleSet;
use grammar::Grammar;
use pool::Pool;
pub(super) use words::COMMON_PROGRAMS;

/// The longest line that is made, in bytes.
const LINE_BYTES_MAX: usize = 400;

/// Returns all words that have to be canaries.
pub(super) fn words() -> Vec<&'static str> {
    words::words().chain(programs::words()).chain(tabled::words()).map(str::trim).collect()
}

/// Makes lines for one rule set.
#[derive(Debug)]
pub(super) struct Generator {
    rng: Rng,
    set: RuleSet,
    corpus: Vec<String>,
    pool: Pool,
}

impl Generator {
    /// Returns a generator that begins with a corpus.
    pub(super) fn new(seed: u64, set: RuleSet, corpus: &[String]) -> Self {
        Self { rng: Rng::with_seed(seed), set, corpus: corpus.to_vec(), pool: Pool::default() }
    }

    /// Makes a line.
    pub(super) fn line(&mut self) -> String {
        let mut line = match self.rng.u32(..100) {
            0..30 => Grammar::new(&mut self.rng, &self.set).line(),
            30..36 if !self.corpus.is_empty() => {
                let line = self.rng.choice(&self.corpus).cloned().unwrap_or_default();
                // A line of the corpus names programs that are not listed here.
                let line = if self.rng.bool() { mutate::with_programs(&mut self.rng, &self.set, &line) } else { line };
                mutate::mutate(&mut self.rng, &self.set, &line, "")
            }
            _ => match self.pool.pick(&mut self.rng) {
                Some((line, other)) => mutate::mutate(&mut self.rng, &self.set, line, other),
                None => Grammar::new(&mut self.rng, &self.set).line(),
            },
        };
        while line.len() > LINE_BYTES_MAX {
            line.pop();
        }
        line.retain(|char| char != '\0');
        line
    }

    /// Takes notice of a line that was allowed and did no harm.
    pub(super) fn keep(&mut self, line: &str) {
        self.pool.keep(&mut self.rng, line);
    }

    /// Returns some of the lines that were kept.
    pub(super) fn samples(&mut self, count: usize) -> Vec<String> {
        (0..count).filter_map(|_| self.pool.pick(&mut self.rng).map(|(line, _)| line.to_owned())).collect()
    }
}

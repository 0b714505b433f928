//! The console of `tollgate dev` and `tollgate sample`: every verdict as it happens, as a line for people on a terminal and as JSONL in a pipe.

use std::io::Write;
use std::time::Duration;

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::Stop;

use super::Screen;
use super::sample::{Play, Sample, Script};
use super::verdict_lines::Line;
use tollgate_operations::{Start, Verdict, VerdictReader};

/// How long to wait for a verdict before the sign to stop is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What the console shows and plays.
pub(crate) struct Console {
    reader: VerdictReader,
    screen: Screen,
    sample: Option<Sample>,
    /// Whether to end once the sample has been played.
    is_once: bool,
}

impl Console {
    /// Returns a console that shows every verdict that is published from now on; of a sample on new threads, only those of the sample.
    pub(crate) fn new(kafka: &KafkaSettings, screen: Screen, play: Option<(Script, Play)>, is_once: bool) -> anyhow::Result<Self> {
        let reader = VerdictReader::new(kafka, Start::End)?;
        let sample = play.map(|(script, play)| Sample::new(kafka, script, play)).transpose()?;
        Ok(Self { reader, screen, sample, is_once })
    }

    /// Works until the sign to stop, or until the sample has been played if that is what was asked for.
    pub(crate) fn run(mut self, stop: &Stop) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        let line = Line::new(self.screen, true);
        if self.screen.is_terminal {
            writeln!(out, "\n{}", line.head())?;
        }
        while !stop.is_given() {
            let is_over = match &mut self.sample {
                Some(sample) => !sample.go_on()?,
                None => false,
            };
            if is_over && let Some(sample) = self.sample.take() {
                say!("{}", sample.summary());
                if self.is_once {
                    return Ok(());
                }
            }
            let shows = |verdict: &Verdict| self.sample.as_ref().is_none_or(|sample| sample.shows(verdict));
            let Some(verdict) = self.reader.next(POLL)?.filter(shows) else { continue };
            let waited_ms = self.sample.as_mut().and_then(|sample| sample.receive(&verdict));
            if self.screen.is_terminal {
                writeln!(out, "{}", line.of(&verdict, waited_ms))?;
            } else {
                out.write_all(&verdict.value)?;
                out.write_all(b"\n")?;
            }
            out.flush()?;
        }
        Ok(())
    }
}

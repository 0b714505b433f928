//! Measures all that a report shows, part by part. A part that fails or takes too long costs its own rows and no others.
//!
//! Everything is built first, then the core is measured alone, then workers on a cluster. The parts share one time ([`Budget`]); where it
//! gets short there are fewer rounds.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::alone::recorded;
use super::{Absence, Bed, Checkout, Findings, Progress, Ratio, Session, Subject, SweepPoint, Versus};
use super::{BASELINES, BENCHES, Budget};

/// Shares of the peak that latency is measured at.
const SWEEP: [f64; 6] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0];
/// How many times the peak is offered.
const OVERLOAD: f64 = 2.0;
/// How long all builds together may take, before the time of the report begins.
const BUILD_TIME_MAX: Duration = Duration::from_secs(600);
/// A part is not begun if it has less time than this.
const PART_TIME_MIN: Duration = Duration::from_secs(5);
/// The share of the rate of a drain at which the search for the peak begins: the sender and the waiter need their part of the machine.
const NEAR_DRAINED: f64 = 0.3;

/// The parts, and about how many seconds each takes on two cores.
mod weight {
    pub(super) const BENCHES: [u32; 4] = [40, 90, 45, 130];
    pub(super) const DRAIN: u32 = 270;
    pub(super) const PEAK: u32 = 90;
    pub(super) const LATENCY: u32 = 15;
    pub(super) const SWEEP: u32 = 45;
    pub(super) const OVERLOAD: u32 = 65;
    pub(super) const VERSUS: u32 = 105;
    pub(super) const PARTITIONS: u32 = 110;
    pub(super) const SMALLER: u32 = 60;
    pub(super) const ABUSE: u32 = 70;
    pub(super) const SWITCH: u32 = 70;
    pub(super) const DIGEST: u32 = 40;
    pub(super) const ALL: u32 =
        305 + DRAIN + 2 * (PEAK + SWEEP) + LATENCY + OVERLOAD + VERSUS + PARTITIONS + SMALLER + ABUSE + SWITCH + DIGEST;
}

/// The settings of a report.
#[derive(Debug)]
pub struct Suite<'a> {
    /// The checkout with the baselines and the benchmarks of the core.
    pub checkout: &'a Checkout,
    /// Baselines that were given by hand; they stand in for those of the checkout that have their names.
    pub baselines: &'a [Subject],
    /// How often each side of a comparison is measured.
    pub rounds: usize,
    /// Events of a topic that is drained.
    pub events: usize,
    /// How long all of it may take once everything is built.
    pub time: Duration,
}

/// A report that is being made.
struct Report<'a> {
    suite: &'a Suite<'a>,
    budget: Budget,
    findings: Findings,
    save: &'a dyn Fn(&Findings),
}

impl Suite<'_> {
    /// Measures all of it; `open` opens the session when the core has been measured, and `save` gets what is known after every part.
    pub fn run(
        &self,
        findings: Findings,
        progress: Progress,
        open: impl FnOnce(Progress) -> Result<Session>,
        save: &dyn Fn(&Findings),
    ) -> Findings {
        let start = Instant::now();
        let mut report = Report { suite: self, budget: Budget::new(self.time, weight::ALL), findings, save };
        let (baselines, benches) = report.build(&progress);
        report.budget = Budget::new(self.time, weight::ALL);
        report.measure_core(&progress, &benches);
        match open(progress) {
            Ok(session) => report.measure_workers(&session, baselines),
            Err(error) => report.findings.absences.push(Absence::failed("broker", &format!("{error:#}"))),
        }
        report.findings.seconds = start.elapsed().as_secs_f64();
        save(&report.findings);
        report.findings
    }
}

impl Report<'_> {
    /// Builds what can be built: the baselines, and the benchmarks of the core.
    fn build(&mut self, progress: &Progress) -> (Vec<Subject>, Vec<&'static str>) {
        let Suite { checkout, baselines, .. } = self.suite;
        let end = Instant::now() + BUILD_TIME_MAX;
        let left = || end.saturating_duration_since(Instant::now());
        let (mut subjects, mut benches) = (baselines.to_vec(), Vec::new());
        for name in BASELINES {
            if !baselines.iter().any(|given| given.name() == name) {
                progress.say(&format!("building the baseline {name}"));
                let built = checkout.prepare_baseline(name, left());
                subjects.extend(built.map_err(|absence| self.lack(progress, absence)).ok());
            }
        }
        for name in BENCHES {
            progress.say(&format!("building the benchmark {name}"));
            match checkout.prepare_bench(name, left()) {
                Ok(()) => benches.push(name),
                Err(absence) => self.lack(progress, absence),
            }
        }
        (subjects, benches)
    }

    fn measure_core(&mut self, progress: &Progress, benches: &[&str]) {
        for (name, weight) in BENCHES.into_iter().zip(weight::BENCHES) {
            let time = self.budget.take(weight).saturating_duration_since(Instant::now());
            if benches.contains(&name) {
                progress.say(&format!("the core alone: {name}"));
                let measured = self.findings.offline.measure(self.suite.checkout, name, time);
                measured.unwrap_or_else(|absence| self.lack(progress, absence));
                (self.save)(&self.findings);
            }
        }
    }

    fn measure_workers(&mut self, session: &Session, baselines: Vec<Subject>) {
        self.findings.machine.broker = session.broker_place();
        self.drain(session, baselines);
        self.load_gate(session);
        self.load_pass_through(session);
        let Suite { events, rounds, .. } = *self.suite;
        if let Some(rate) = self.findings.peak.as_ref().map(|peak| peak.per_second / 2.0) {
            let rounds = self.part(session, "versus", weight::VERSUS, |session| session.rounds(rounds, Some(rate)));
            if let Some(rounds) = rounds {
                let mut versus = Versus::new(rounds, &self.findings.drained);
                let peaks = self.findings.peak.as_ref().zip(self.findings.pass_through_peak.as_ref());
                versus.peak = Ratio::of(peaks.map(|(gate, other)| gate.per_second / other.per_second));
                self.findings.versus = Some(versus);
            }
        }
        let costs = self.part(session, "partitions", weight::PARTITIONS, |session| session.partition_costs(events, rounds));
        self.findings.partitions = costs.unwrap_or_default();
        let smaller = self.part(session, "drain of smaller events", weight::SMALLER, |session| session.drain_smaller(events, rounds));
        self.findings.drained_smaller = smaller.unwrap_or_default();
        self.findings.abuse_cpu = self.part(session, "abuse over off", weight::ABUSE, |session| session.deciding(events, rounds)).flatten();
        self.findings.switch_ms = self.part(session, "kill switch", weight::SWITCH, |session| Ok(session.controls()?.1));
        // So many that the start of the process does not count.
        let digest = |session: &Session| recorded::digest_per_cpu_second(&session.invocation.binary, 3 * events);
        self.findings.digest_per_cpu_second = self.part(session, "digest", weight::DIGEST, digest);
        session.set_end(None);
    }

    fn drain(&mut self, session: &Session, baselines: Vec<Subject>) {
        let subjects: Vec<_> = [Subject::Gate, Subject::PassThrough].into_iter().chain(baselines).collect();
        let Suite { events, rounds, .. } = *self.suite;
        let drained = self.part(session, "drain", weight::DRAIN, |session| session.drain(&subjects, events, rounds)).unwrap_or_default();
        for drained in &drained {
            if let Some(failure) = &drained.failure {
                self.findings.absences.push(Absence::failed(&drained.name, failure));
            }
            if drained.name == Subject::Gate.name()
                && let Some(rate) = Ratio::of(drained.rounds.iter().map(|round| round.events_per_second))
            {
                session.search_from(rate.median * NEAR_DRAINED);
            }
        }
        self.findings.drained = drained;
        (self.save)(&self.findings);
    }

    /// Measures the gate alone, on one worker.
    fn load_gate(&mut self, session: &Session) {
        let measured = session.with_worker(&Subject::Gate, |bed| {
            self.findings.peak = self.part(session, "peak", weight::PEAK, |session| session.find_peak(bed));
            if let Some(peak) = self.findings.peak.as_ref().map(|peak| peak.per_second) {
                let half = |_: &Session| Ok(bed.run(peak / 2.0, session.plan.times)?.phase);
                self.findings.latency = self.part(session, "latency", weight::LATENCY, half);
                self.sweep(session, bed, &Subject::Gate, peak);
                let overload = |session: &Session| session.overload(bed, peak, OVERLOAD);
                self.findings.overload = self.part(session, "overload", weight::OVERLOAD, overload);
            }
            Ok(())
        });
        self.note(session, "gate under load", measured);
    }

    /// Measures the pass-through alone, without an overload.
    fn load_pass_through(&mut self, session: &Session) {
        let Some(peak) = self.findings.peak.as_ref().map(|peak| peak.per_second) else { return };
        let measured = session.with_worker(&Subject::PassThrough, |bed| {
            self.sweep(session, bed, &Subject::PassThrough, peak);
            self.findings.pass_through_peak =
                self.part(session, "peak of the pass-through", weight::PEAK, |session| session.find_peak(bed));
            Ok(())
        });
        self.note(session, "pass-through under load", measured);
    }

    /// Measures latency at several shares of the peak, as far as there is time.
    fn sweep(&mut self, session: &Session, bed: &mut Bed<'_>, subject: &Subject, peak: f64) {
        let times = session.plan.sweep_times();
        let points = self.part(session, "sweep", weight::SWEEP, |session| {
            let mut points = Vec::new();
            for share in SWEEP {
                if !points.is_empty() && session.is_late_for(times.warm_up + times.measured) {
                    break;
                }
                let phase = bed.run(peak * share, times)?.phase;
                points.push(SweepPoint { name: subject.name().to_owned(), share, phase });
            }
            Ok(points)
        });
        self.findings.sweep.extend(points.unwrap_or_default());
    }

    /// Measures one part within its share of the time, or says why it is missing.
    fn part<T>(&mut self, session: &Session, name: &str, weight: u32, measure: impl FnOnce(&Session) -> Result<T>) -> Option<T> {
        session.set_end(Some(self.budget.take(weight)));
        let minutes = self.suite.time.as_secs_f64() / 60.0;
        let measured = if session.is_late_for(PART_TIME_MIN) {
            Err(anyhow::anyhow!("no time was left of the {minutes:.0} minutes that the report may take, --time-limit gives more"))
        } else {
            session.progress.say(&format!("part: {name}"));
            measure(session)
        };
        let lack = |error: anyhow::Error| self.lack(&session.progress, Absence::failed(name, &format!("{error:#}")));
        let found = measured.map_err(lack).ok();
        (self.save)(&self.findings);
        found
    }

    /// Notes why a worker could not be used.
    fn note(&mut self, session: &Session, name: &str, measured: Result<()>) {
        if let Err(error) = measured {
            self.lack(&session.progress, Absence::failed(name, &format!("{error:#}")));
        }
        (self.save)(&self.findings);
    }

    fn lack(&mut self, progress: &Progress, absence: Absence) {
        progress.say(&format!("{}: not measured: {}", absence.part, absence.why));
        self.findings.absences.push(absence);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::checkout::tests::checkout;
    use super::super::report::samples;
    use super::*;
    use crate::{Machine, rows};

    /// A cargo whose benchmarks print what they are asked for, but for one that fails.
    const CARGO: &str = r#"
case "$*" in
    *--no-run*) ;;
    *growth*) echo 'error: it does not compile'; exit 101 ;;
    *decision*) echo '{"decision":[{"name":"tool_call","bytes":600,"ns":1500,"allocations":4}]}' ;;
    *memory*) echo '{"memory":[{"name":"quiet","threads":1000000,"bytes_per_thread":301,"target":300}]}' ;;
    *) echo '{"instructions":[{"name":"tool_call","per_event":12345}]}' ;;
esac"#;

    #[test]
    fn what_fails_costs_its_own_rows_and_no_others() {
        let (_root, checkout) = checkout("", CARGO);
        let time = Duration::from_secs(60);
        let suite = Suite { checkout: &checkout, baselines: &[], rounds: 1, events: 1_000, time };
        let findings = Findings::new(Machine::here("none".to_owned()), samples::findings().plan);
        let kept = Cell::new(0);
        let open = |_| anyhow::bail!("a broker needs java, which this machine does not have");
        let findings = suite.run(findings, Progress::default(), open, &|_| kept.set(kept.get() + 1));
        let by_what = |start: &str| rows(&findings).into_iter().find(|row| row.what.starts_with(start)).unwrap();
        assert_eq!(by_what("whole-event").measured.as_deref(), Some("1.50 µs, 4.0 allocations"));
        assert_eq!([by_what("memory per live thread, quiet").met, by_what("memory per live thread, busy").met], [Some(false), None]);
        assert!(by_what("cost per event, 10 ").why.is_some_and(|why| why.ends_with("error: it does not compile")));
        assert!(by_what("events per CPU second over the Python worker").why.is_some_and(|why| why.contains("--baselines")));
        assert!(by_what("cost per event, 1 → 64").why.is_some_and(|why| why.contains("needs java")));
        // Not every machine has valgrind, and its absence is no failure.
        assert_eq!(findings.failures().as_deref(), Some("the report lacks what failed: growth, broker"));
        assert!(kept.get() >= 3 && findings.seconds > 0.0, "{} times kept", kept.get());
    }

    #[test]
    fn all_parts_together_are_the_whole_time() {
        let named = [weight::DRAIN, weight::LATENCY, weight::OVERLOAD, weight::VERSUS, weight::PARTITIONS];
        let others = [weight::SMALLER, weight::ABUSE, weight::SWITCH, weight::DIGEST];
        let twice = [weight::PEAK, weight::SWEEP];
        let sum = weight::BENCHES.iter().chain(&named).chain(&others).chain(&twice).chain(&twice).sum::<u32>();
        assert_eq!(sum, weight::ALL);
    }
}

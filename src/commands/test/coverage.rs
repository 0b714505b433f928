//! What the cases reached of their policies: detectors, providers, tools of lists, and the findings of loop controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use serde_json::{Value, json};
use tollgate_core::decide::guardrail::ProviderOutcome;
use tollgate_core::decide::loops::RepetitionSettings;
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::{Intervention, LoopCode};

use super::run::{StepResult, run};
use super::suite::{Case, Tested};
use crate::commands::shared::suites::{Case as _, Outcome, Reach, percent};
use crate::commands::shared::{Column, OutputFormat, Screen, Table, number, shown, text};

const COVERED: &[Column] = &[text("policy"), text("what"), number("reached"), number("of"), number("%")];

/// The kinds of things that can be reached, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A safety detector that finds something.
    Detector,
    /// A provider that allows, denies, or fails.
    Provider,
    /// A tool of a provider's lists.
    Tool,
    /// A finding of a loop controller.
    Loop,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Detector => "safety detectors",
            Self::Provider => "providers",
            Self::Tool => "tools of lists",
            Self::Loop => "loop findings",
        }
    }
}

/// One thing that can be reached, such as `allowlist: denies bash`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
}

/// How often each thing of each policy was reached, by policy version.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    pub(super) policies: BTreeMap<String, Reached>,
}

/// How often each thing of a policy was reached.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// The name of the policy for people.
    pub(super) name: String,
    pub(super) items: BTreeMap<Item, u64>,
    /// The providers by their places in the chain.
    providers: Vec<Provider>,
}

#[derive(Debug)]
struct Provider {
    label: String,
    listed: BTreeSet<String>,
}

impl Coverage {
    /// Returns what was reached of a policy so far: nothing at first.
    pub(super) fn of(&mut self, tested: &Tested) -> &mut Reached {
        let version = Policy::new(&tested.settings).version().to_owned();
        self.policies.entry(version).or_insert_with(|| Reached::of(tested))
    }
}

impl Reach<Tested> for Coverage {
    const WHOLE: &'static str = "the policies";

    fn begin(&mut self, tested: &Tested) {
        self.of(tested);
    }

    fn run(&mut self, tested: &Tested, case: &Case) -> Outcome {
        let reached = self.of(tested);
        Outcome { failures: run(case, tested, |got| reached.note(got)), ..case.outcome() }
    }

    fn reached(&self) -> (usize, usize) {
        let hits = || self.policies.values().flat_map(|reached| reached.items.values());
        (hits().filter(|hits| **hits > 0).count(), hits().count())
    }

    fn write(&self, out: &mut impl io::Write, screen: Screen) -> io::Result<()> {
        let mut table = Table::new(COVERED);
        let mut row = |policy: &str, what: &str, (reached, all): (usize, usize)| {
            table.row(vec![policy.to_owned(), what.to_owned(), reached.to_string(), all.to_string(), percent((reached, all)).to_string()]);
        };
        for reached in self.policies.values() {
            reached.shares().into_iter().for_each(|(kind, share)| row(&reached.name, kind.as_str(), share));
        }
        row("all", "", self.reached());
        writeln!(out)?;
        table.write(out, screen, OutputFormat::Wide)?;
        for reached in self.policies.values() {
            for item in reached.missed() {
                writeln!(out, "not reached in {}: {}, {}", shown(&reached.name), item.kind.as_str(), shown(&item.name))?;
            }
        }
        Ok(())
    }

    fn write_json(&self, out: &mut impl io::Write) -> io::Result<()> {
        for (version, reached) in &self.policies {
            let items: Vec<_> =
                reached.items.iter().map(|(item, hits)| json!({"kind": item.kind, "name": item.name, "hits": hits})).collect();
            let share = reached.shares().into_values().fold((0, 0), |(one, two), (reached, all)| (one + reached, two + all));
            let percent = percent(share);
            writeln!(
                out,
                "{}",
                json!({"policy": reached.name, "policy_version": version, "reached": share.0, "of": share.1, "percent": percent, "coverage": items})
            )?;
        }
        Ok(())
    }
}

impl Reached {
    fn of(tested: &Tested) -> Self {
        let mut reached = Self { name: tested.name.clone(), ..Self::default() };
        let settings = serde_json::to_value(&tested.settings).unwrap_or_default();
        for detector in settings.get("detectors").and_then(Value::as_array).into_iter().flatten() {
            reached.add(Kind::Detector, detector.get("use").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        let providers: Vec<_> = tested.settings.guardrails.iter().flat_map(|guardrails| &guardrails.providers).collect();
        for (place, provider) in providers.iter().enumerate() {
            let is_single = providers.iter().filter(|other| other.name == provider.name).count() == 1;
            let name = provider.settings.server().map_or(provider.name, |server| server.name.as_str());
            let label = if is_single { name.to_owned() } else { format!("{name} (provider {place})") };
            let config = provider.settings.config();
            let mut listed = BTreeSet::new();
            for key in ["denied_tools", "allowed_tools"] {
                let tools = config.get(key).and_then(Value::as_array);
                listed.extend(tools.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
            }
            listed.extend(config.get("tool_capabilities").and_then(Value::as_object).into_iter().flatten().map(|(tool, _)| tool.clone()));
            for outcome in ["allows", "denies"].into_iter().chain(provider.settings.server().map(|_| "fails")) {
                reached.add(Kind::Provider, format!("{label}: {outcome}"));
            }
            listed.iter().for_each(|tool| reached.add(Kind::Tool, format!("{label}: {tool}")));
            reached.providers.push(Provider { label, listed });
        }
        possible_findings(tested).for_each(|code| reached.add(Kind::Loop, code.as_str().to_owned()));
        reached
    }

    fn add(&mut self, kind: Kind, name: String) {
        self.items.insert(Item { kind, name }, 0);
    }

    fn hit(&mut self, kind: Kind, name: String) {
        if let Some(hits) = self.items.get_mut(&Item { kind, name }) {
            *hits += 1;
        }
    }

    /// Notes what a step reached.
    pub(super) fn note(&mut self, got: &StepResult) {
        let Some(verdict) = &got.verdict else { return };
        let text = |pointer: &str| verdict.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        // What is no detector's name is a rule of the native one.
        let named = text("/safety/detector");
        let is_named = named.is_empty() || self.items.contains_key(&Item { kind: Kind::Detector, name: named.clone() });
        self.hit(Kind::Detector, if is_named { named } else { "native".to_owned() });
        for reason in verdict.get("reasons").and_then(Value::as_array).into_iter().flatten() {
            if let Some(code) = reason.get("code").and_then(Value::as_str).filter(|_| reason.get("source") == Some(&"loop".into())) {
                self.hit(Kind::Loop, code.to_owned());
            }
        }
        let tool = text("/tool_name");
        for (place, outcome) in &got.provider_calls {
            let Some(Provider { label, listed }) = self.providers.get(*place) else { continue };
            let (label, is_listed) = (label.clone(), listed.contains(&tool));
            let word = match outcome {
                ProviderOutcome::Allowed => "allows",
                ProviderOutcome::Denied => "denies",
                ProviderOutcome::FailedClosed(_) | ProviderOutcome::FailedOpen(_) => "fails",
            };
            self.hit(Kind::Provider, format!("{label}: {word}"));
            if is_listed {
                self.hit(Kind::Tool, format!("{label}: {tool}"));
            }
        }
    }

    /// Returns the kinds that there is anything of, each with how many were reached and how many there are.
    pub(super) fn shares(&self) -> BTreeMap<Kind, (usize, usize)> {
        let mut shares = BTreeMap::new();
        for (item, hits) in &self.items {
            let (reached, all) = shares.entry(item.kind).or_default();
            *reached += usize::from(*hits > 0);
            *all += 1;
        }
        shares
    }

    /// Returns what no case reached.
    pub(super) fn missed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|(_, hits)| **hits == 0).map(|(item, _)| item)
    }
}

/// Returns the findings that the settings can lead to.
fn possible_findings(tested: &Tested) -> impl Iterator<Item = LoopCode> {
    let loops = &tested.settings.tool_loop_guardrails;
    LoopCode::all().filter(move |code| match code {
        LoopCode::Rule(finding) => loops.steps.as_ref().is_some_and(|steps| steps.can_find(*finding)),
        code => loops.repetition.as_ref().is_some_and(|repetition| can_find(repetition, *code)),
    })
}

/// Returns whether the thresholds of the first controller can lead to a finding of it.
fn can_find(settings: &RepetitionSettings, code: LoopCode) -> bool {
    let has_idempotent = settings.idempotent_tools.iter().any(|tool| !settings.mutating_tools.contains(tool));
    let is_enabled = if code.intervention() == Intervention::Warn { settings.warnings_enabled } else { settings.hard_stop_enabled };
    let is_possible = match code {
        LoopCode::IdempotentNoProgressWarning | LoopCode::IdempotentNoProgressBlock => has_idempotent,
        // A failure that halts is not warned of.
        LoopCode::SameToolFailureWarning => {
            !settings.hard_stop_enabled || settings.same_tool_failure_warn_after < settings.same_tool_failure_halt_after
        }
        _ => true,
    };
    is_enabled && is_possible
}

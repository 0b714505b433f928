//! Which sides the arguments name, each with its policy, its controls and its rules against abuse.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::policy::Policy;

use tollgate_config::load;
use tollgate_config::settings::{Settings, SubjectKeys};
use tollgate_recordings::compare::{Compared, Judge, Limit, Recorded, SideRules};

use super::{Against, DiffArgs, opened};
use crate::commands::shared::{apply_controls, process, wrong};

/// What is compared.
pub(super) struct DiffRequest {
    pub(super) compared: Compared,
    /// What each side is called.
    pub(super) names: [String; 2],
    /// How many lines of --controls hold no control.
    pub(super) refused: u64,
}

/// Returns what is compared.
pub(super) fn diff_request(args: &DiffArgs, settings: &Settings, has_config: bool) -> anyhow::Result<DiffRequest> {
    let config = if has_config { "the configuration in force" } else { "the built-in defaults" };
    let name = |path: &Path| path.display().to_string();
    let loaded = args.policy.iter().map(|path| load(Some(path), std::env::vars_os())).collect::<Result<Vec<_>, _>>()?;
    match (args.against, args.policy.as_slice(), loaded.as_slice()) {
        (Some(Against::Recorded), [one], [read]) => {
            if args.asks_for_abuse() {
                return Err(wrong("--abuse: found with --against recorded; the rules of two policies are compared: give --policy twice"));
            }
            let topic = || PathBuf::from(format!("topic:{}", settings.kafka.topics.decisions));
            let decisions = args.decisions.clone().unwrap_or_else(topic);
            let (controls, refused) = controls(args, &subject_keys(args, settings, &loaded)?)?;
            let named_by = if args.decisions.is_some() { "--decisions" } else { "kafka.topics.decisions" };
            let recorded = published(&decisions, settings, named_by)?;
            let compared = Compared::published(recorded, judge(read, &controls, false)?);
            Ok(DiffRequest { compared, names: [name(&decisions), name(one)], refused })
        }
        (Some(Against::Recorded), ..) => Err(wrong("--against recorded compares with one policy: give --policy once")),
        (None, [one], [read]) => policies(args, settings, [settings, read], [config.to_owned(), name(one)], &loaded),
        (None, [one, other], [first, second]) => policies(args, settings, [first, second], [name(one), name(other)], &loaded),
        (None, ..) => Err(wrong("--policy: found more than two; two policies are compared")),
    }
}

/// Returns the comparison of two configurations. Their rules against abuse are compared where they differ, or where that is asked for.
fn policies(
    args: &DiffArgs,
    settings: &Settings,
    sides: [&Settings; 2],
    names: [String; 2],
    loaded: &[Settings],
) -> anyhow::Result<DiffRequest> {
    let [first_side, second_side] = sides;
    let (one, other) = (&first_side.abuse, &second_side.abuse);
    let is_other = one.rules.rules != other.rules.rules || one.rules.lateness_ms != other.rules.lateness_ms;
    let counts = args.asks_for_abuse() || is_other;
    if counts && !(one.signals && other.signals) {
        return Err(wrong(
            "abuse.signals: found false, so that there is nothing to count for the rules; write true in both configurations",
        ));
    }
    let keys = if counts { same_keys(&sides)? } else { subject_keys(args, settings, loaded)? };
    // A suspension by a rule of one side is none on the other.
    let (first, refused) = controls(args, &keys)?;
    let second = if counts { controls(args, &keys)?.0 } else { Arc::clone(&first) };
    let [a, b] = [judge(first_side, &first, counts)?, judge(second_side, &second, counts)?];
    if a.policy.version() == b.policy.version() && !counts {
        return Err(wrong(
            "--policy: both decide alike, they have the same policy_version and the same rules of abuse; nothing can differ",
        ));
    }
    let rules =
        counts.then(|| [(one, first), (other, second)].map(|(side, controls)| SideRules { rules: Arc::new(side.rules.clone()), controls }));
    Ok(DiffRequest { compared: Compared::policies([a, b], rules), names, refused })
}

fn judge(settings: &Settings, controls: &Arc<Controls>, counts: bool) -> anyhow::Result<Judge> {
    settings.policy.unusable().for_each(|fault| say!("tollgate: {fault}"));
    let servers = process::waited_servers(&settings.policy)?;
    let policy = Policy::under(&settings.policy, Arc::clone(controls));
    let policy = if counts { policy.with_signals(settings.abuse.rules.interest()) } else { policy };
    Ok(Judge { policy: Arc::new(policy), servers })
}

/// Returns a table with the controls of the file, and how many of its lines hold none.
fn controls(args: &DiffArgs, keys: &SubjectKeys) -> anyhow::Result<(Arc<Controls>, u64)> {
    let controls = Arc::new(Controls::new(keys.iter()));
    let refused = args.controls.as_deref().map_or(Ok(0), |path| apply_controls(path, &controls))?;
    Ok((controls, refused))
}

/// Returns the keys of subject hashes. Controls hold for both sides, so that all configurations that have keys must have the same.
fn subject_keys(args: &DiffArgs, settings: &Settings, loaded: &[Settings]) -> anyhow::Result<SubjectKeys> {
    let mut all = vec![settings.subject_keys.clone()];
    all.extend(loaded.iter().filter(|_| args.controls.is_some()).map(|settings| settings.subject_keys.clone()));
    all.retain(|keys| keys.first().is_some());
    all.dedup_by(|one, other| one.iter().eq(other.iter()));
    if all.len() > 1 {
        return Err(wrong(
            "--controls: the configurations differ in privacy.subject_key, and a suspension holds for the hash under one key",
        ));
    }
    Ok(all.pop().unwrap_or_default())
}

/// Returns the keys of both sides, which have to be the same: a subject is known by its hash.
fn same_keys(sides: &[&Settings; 2]) -> anyhow::Result<SubjectKeys> {
    let [one, other] = sides.map(|side| &side.subject_keys);
    if !one.iter().eq(other.iter()) {
        return Err(wrong(
            "privacy.subject_key: the two configurations differ in it, and whom their rules find is compared by hash; write the same",
        ));
    }
    Ok(one.clone())
}

impl DiffArgs {
    /// Returns whether the rules against abuse are to be compared even if they are the same.
    fn asks_for_abuse(&self) -> bool {
        self.abuse || self.fail_on.iter().any(Limit::is_of_suspensions)
    }
}

/// Reads the verdicts that were published.
fn published(path: &Path, settings: &Settings, named_by: &str) -> anyhow::Result<Recorded> {
    let (input, missing) = opened(path, settings, named_by)?;
    let mut recorded = Recorded::read(input).with_context(|| format!("{}: cannot be read", path.display()))?;
    recorded.missing = missing.count();
    if let Some(first) = recorded.faults.first() {
        say!("tollgate: {}: {} lines hold no verdict, the first is line {first}", path.display(), recorded.faults.len());
    }
    ensure!(!recorded.is_empty(), "{}: found no verdict; capture the decisions topic: tollgate capture --topic NAME", path.display());
    Ok(recorded)
}

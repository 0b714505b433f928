//! The inspection of a response: the detectors in their order, and then what else is in doubt.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::message::user_message;
use super::reading::{CalledTool, ResponseContent, Scan};
use super::{Detection, Doubt, OnDoubt, ResponseSettings, ResponseView, SafetyDetector, Termination};
use crate::event::decode::ModelBody;

/// The detectors in force, in configured order, of which the first hit counts, and what follows where a response is in doubt.
#[derive(Debug, Default)]
pub struct SafetyChain {
    detectors: Vec<Arc<dyn SafetyDetector>>,
    settings: ResponseSettings,
    reads_every_shape: bool,
    /// Whether no detector finds anything where the scan has no signal. Most responses are read once then, and no detector is asked.
    is_within_scan: bool,
}

/// What was found in a response.
#[derive(Debug, Default)]
pub struct Inspection<'d> {
    /// How it was cut off, if it was.
    pub termination: Option<Termination>,
    /// What is in doubt of a response that no safety system stopped, or of which it stopped single calls.
    pub doubt: Option<Doubt>,
    /// The calls that must not run.
    pub suppressed: Vec<CalledTool<'d>>,
}

impl Inspection<'_> {
    /// Returns whether all calls of the response must not run, those included that no reader finds and those under a changed id.
    #[must_use]
    pub fn suppresses_all(&self) -> bool {
        let is_stopped = self.termination.as_ref().is_some_and(|termination| !termination.is_of_single_calls);
        is_stopped || self.doubt.is_some_and(suppresses)
    }
}

impl SafetyChain {
    /// Returns a chain of these detectors.
    #[must_use]
    pub fn new(detectors: Vec<Arc<dyn SafetyDetector>>, settings: ResponseSettings) -> Self {
        let reads_every_shape = settings.reads_every_shape() || detectors.iter().any(|detector| detector.reads_every_shape());
        let is_within_scan = reads_every_shape && detectors.iter().all(|detector| detector.is_within_scan());
        Self { detectors, settings, reads_every_shape, is_within_scan }
    }

    /// Inspects a response. Of an API error, only how it was cut off is asked.
    pub fn inspect<'d>(&self, body: &ModelBody<'d>) -> Inspection<'d> {
        let scan = self.reads_every_shape.then(|| Scan::of(body));
        let is_healthy = self.is_within_scan && scan.as_ref().is_some_and(|scan| scan.signals.is_empty());
        let reasons = if is_healthy { ResponseView::default() } else { ResponseView::of(body) };
        let view = ResponseView { scan, ..reasons };
        let doubt = view.scan.as_ref().filter(|_| !matches!(body, ModelBody::Error(_))).and_then(|scan| self.settings.doubt(scan));
        let mut asked = self.detectors.iter().filter(|_| !is_healthy);
        if let Some((detector, detection)) = asked.find_map(|detector| Some((detector.name(), detector.detect(&view)?))) {
            // Of a response that was stopped nothing is in doubt. Of the calls that were not flagged something may be.
            let doubt = doubt.filter(|_| detection.flagged.is_some());
            return terminated(detection.rule.unwrap_or(detector), detection, doubt, ResponseContent::of(body));
        }
        let suppressed = if doubt.is_some_and(suppresses) { ResponseContent::of(body).calls } else { Vec::new() };
        Inspection { termination: None, doubt, suppressed }
    }
}

fn suppresses(doubt: Doubt) -> bool {
    doubt.action() == OnDoubt::Suppress
}

fn terminated<'d>(detector: &'static str, detection: Detection, doubt: Option<Doubt>, content: ResponseContent<'d>) -> Inspection<'d> {
    let mut calls = content.calls;
    let flagged = detection.flagged.as_ref().filter(|_| !doubt.is_some_and(suppresses));
    if let Some(flagged) = flagged {
        calls.retain(|call| call.id.as_deref().is_some_and(|id| flagged.contains(id)));
        // In a stream the verdicts come behind the pieces with the calls.
        let read: BTreeSet<_> = calls.iter().filter_map(|call| call.id.clone()).collect();
        let others = flagged.iter().filter(|id| !read.contains(id.as_str()));
        calls.extend(others.map(|id| CalledTool { id: Some(Cow::Owned(id.clone())), name: None }));
    }
    let is_of_single_calls = flagged.is_some();
    let user_message = user_message(detector, &detection, !calls.is_empty(), content.is_blank);
    let termination = Termination {
        detector,
        category: detection.category,
        reason_field: detection.reason_field,
        reason_value: detection.reason_value,
        suppressed_tool_call_count: calls.len(),
        suppressed_tool_call_names: calls.iter().map(|call| call.name.as_deref().unwrap_or("unknown").to_owned()).collect(),
        suppressed_tool_call_ids: calls.iter().filter_map(|call| call.id.as_deref().map(str::to_owned)).collect(),
        user_message,
        extras: detection.extras,
        stage: detection.stage,
        shape: detection.shape,
        is_of_single_calls,
    };
    Inspection { termination: Some(termination), doubt, suppressed: calls }
}

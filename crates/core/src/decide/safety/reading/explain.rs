//! What was read where in a body: for whoever asks why a stop was missed.

use serde::Serialize;
use tollgate_json::{Shape, Value};

use super::paths::{Place, Visit};
use super::scan::paths_of;
use super::test::ReasonText;
use super::{CallsAt, Ending, Reader, ReasonAt};
use crate::event::decode::ModelBody;

/// How much of a word is shown.
const SHOWN_MAX: usize = 40;

/// What was read in a body.
#[derive(Debug, Default, Serialize)]
pub struct Explanation {
    /// The shape with the most places in the body; `None` if no place of any shape is there.
    pub shape: Option<&'static str>,
    /// The places that may say why the response ended, in the order of the body.
    pub reasons: Vec<ReadReason>,
    /// How many calls the host runs, mirrors and pieces included.
    pub calls: usize,
    /// How many texts for the user there are, empty or not.
    pub texts: usize,
    #[serde(skip)]
    places: Vec<(&'static str, usize)>,
}

/// A place that may say why a response ended.
#[derive(Debug, Serialize)]
pub struct ReadReason {
    /// The shape whose place it is.
    pub shape: &'static str,
    /// The place.
    pub path: &'static str,
    /// The value, where it is a word or a number; else what it is. Texts of other places are not shown.
    pub value: String,
    /// What the value means: `stop`, `complete`, `cut`, `running`, `unknown` for a word that is not known, or `nothing`.
    pub means: &'static str,
    /// The rule that spoke, if the value is a stop.
    pub rule: Option<&'static str>,
}

impl Explanation {
    /// Reads a body.
    #[must_use]
    pub fn of(body: &ModelBody<'_>) -> Self {
        let mut explanation = Self::default();
        let (paths, value) = paths_of(body);
        paths.walk(value, &mut explanation);
        // Of shapes with as many places, the first reader's counts.
        explanation.shape = explanation.places.iter().rev().max_by_key(|(_, places)| *places).map(|(shape, _)| *shape);
        explanation
    }

    fn count(&mut self, reader: &'static Reader) {
        match self.places.iter_mut().find(|(shape, _)| *shape == reader.name) {
            Some((_, places)) => *places += 1,
            None => self.places.push((reader.name, 1)),
        }
    }
}

impl<'d> Visit<'d> for Explanation {
    fn reason(&mut self, place: &Place<ReasonAt>, value: Value<'d>, beside: Value<'d>) {
        let (shown, means, rule) = match place.at.test.read(value, beside) {
            ReasonText::Stop(found) => (found.value.to_string(), "stop", Some(place.at.rule)),
            ReasonText::Stands(word, ending) if word.len() <= SHOWN_MAX => {
                let means = match ending {
                    Ending::Complete => "complete",
                    Ending::Cut => "cut",
                    Ending::Running => "running",
                    _ => "unknown",
                };
                (word.into_owned(), means, None)
            }
            ReasonText::Nothing if !place.at.test.is_ending() => return,
            _ if value.shape() == Shape::Number => (String::from_utf8_lossy(value.source()).into_owned(), "nothing", None),
            _ => (value.shape().to_string(), "nothing", None),
        };
        self.count(place.reader);
        self.reasons.push(ReadReason { shape: place.reader.name, path: place.at.path, value: shown, means, rule });
    }

    fn call(&mut self, place: &Place<CallsAt>, value: Value<'d>) {
        if place.at.counts(value) {
            self.count(place.reader);
            self.calls += 1;
        }
    }

    fn text(&mut self, reader: &'static Reader, _: Value<'d>) {
        self.count(reader);
        self.texts += 1;
    }
}

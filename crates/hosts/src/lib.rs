//! The wires of agent hosts: what a host asks over HTTP or on stdin is read as events of the gate, and the gate's verdicts are written as the
//! answer that this host understands.
//!
//! A wire is pure. It knows no thread, no deadline and no Kafka: the server publishes the events of a [`Question`], waits, and hands the
//! [`Outcome`] to the question's own answer.

mod wire;

pub use wire::{Answer, Event, Outcome, Question, Request, Unanswered, Verdict, Wire};

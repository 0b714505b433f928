//! Tests the rules of the gate through whole events and verdicts: scripts of events, each with what its verdict must hold.

mod bytes;
mod calls;
mod controls;
mod counting;
mod safety;
mod signals;
mod signals_once;
mod stories;
mod waiting;

//! Tests the core through its public interface: records in, verdicts, controls and state out.
//!
//! | module | what holds |
//! |---|---|
//! | `gate` | the rules of the gate, told as scripts of events and verdicts |
//! | `rejections`, `controls` | which records become events and controls, and which rule each of the others breaks |
//! | `odd_controls` | no record opens a gate unless it is proven to permit, and compaction changes nothing |
//! | `registry`, `policy_versions` | detectors and providers of others; the version of a policy |
//! | `passport`, `golden_oap` | passports: the answers here, and those of the reference evaluator |
//! | `passport_calls` | calls of attackers, and honest calls that were refused |
//! | `golden` | behaviour observed by running the systems that the rules come from |
//! | `golden_signals`, `signals_corpus`, `sdk_objects` | what providers and SDKs say of a safety stop, and its look-alikes |
//! | `sanitiser` | responses whose calls must not run, rewritten |
//! | `bounds`, `shares` | threads of a partition, bytes of a thread, time per event, and the tenants' shares |
//! | `properties` | the JSON dialect, decoding, the offset tracker and the order of reading, for every input |
//! | `synthetic_runs` | whole runs of agents, cut in several ways |
//! | `redact` | redaction: verdicts stay the same, and nothing of the contents is left |
//! | `checkpoints` | no record is lost and none decided in two ways, for the gate and for any stage |
//! | `state_format` | the bytes of checkpoints, of all versions |
//! | `purity` | no crate that does I/O, reads clocks or counts is among the dependencies |
//!
//! The program `recorded` replays recorded runs of real agents.
//!
//! Tests run side by side. Those of `bounds` and `rejections` that measure take the time of their own thread, which the others change
//! little.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::alloc::System;

use mockalloc::Mockalloc;

/// Counts allocations where a test asks for it.
#[global_allocator]
static ALLOCATOR: Mockalloc<System> = Mockalloc(System);

mod bounds;
mod checkpoints;
mod controls;
mod gate;
mod golden;
mod golden_oap;
mod golden_signals;
mod odd_controls;
mod passport;
mod passport_calls;
mod policy_versions;
mod properties;
mod purity;
mod redact;
mod registry;
mod rejections;
mod sanitiser;
mod sdk_objects;
mod shares;
mod signals_corpus;
mod state_format;
mod synthetic_runs;

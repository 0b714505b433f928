//! Deciding: events in, verdicts out.
//!
//! | module | what it is |
//! |---|---|
//! | [`ruling`] | what is decided and why, as data that state keeps and verdicts show |
//! | [`safety`], [`guardrail`], [`loops`] | is the response cut off, does policy allow the call, is the thread stuck |
//! | [`thread`] | what is remembered of a thread and its running turn, in bounded memory |
//! | [`controls`] | suspended subjects and agents' passports |
//! | [`signal`] | what deciding saw of a subject, for counting over the fleet |
//! | [`tools`] | names of tools, with wildcards, for every list of a configuration |
//! | [`policy`] | validated settings → the chains in force, and their digest |
//! | [`evaluate`] | thread and event → verdict |
//! | [`deciding`], [`pass_through`] | the stages |
//! | [`shadow`] | a policy on trial beside the policy in force |

pub mod controls;
pub mod deciding;
pub mod evaluate;
mod gate;
pub mod guardrail;
pub mod ids;
pub mod loops;
pub mod pass_through;
pub mod policy;
pub mod ruling;
pub mod safety;
pub mod shadow;
pub mod signal;
pub mod thread;
pub mod tools;

pub use gate::Gate;

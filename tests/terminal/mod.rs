//! Tests of what commands show on a terminal: they run in a pseudo-terminal of a fixed size, and the screen is compared with a snapshot.
//!
//! `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- terminal` writes the snapshots in `snapshots` anew.

mod dev;
mod events;
mod lists;
mod run;
mod screen;
mod tap;
mod top;

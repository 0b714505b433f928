//! What several commands share.
//!
//! | module | what it does |
//! |---|---|
//! | `output` | tables, colour, widths and times |
//! | `topics`, `topic_records` | which topics there are; reads a topic, or a part of it |
//! | `sender`, `publish` | the producer of all commands; publishes some records and waits for their acknowledgements |
//! | `controls_file` | controls from a file |
//! | `process`, `ready`, `hints` | a worker's process, whether it is ready, what to do next |
//! | `interrupt`, `interrupt_input` | Ctrl-C, and lines that end with it |

pub(super) mod controls_file;
pub(super) mod hints;
pub(super) mod interrupt;
mod interrupt_input;
pub(super) mod output;
pub(super) mod process;
pub(super) mod publish;
pub(super) mod ready;
pub(super) mod sender;
pub(super) mod topic_records;
pub(super) mod topics;

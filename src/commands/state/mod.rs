//! `tollgate state`: shows what the state topic remembers of threads, moves threads to other partitions, and resets threads.

mod list;
mod lookup;
mod rekey;
mod reset;
mod scan;
mod show;
mod shown;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_core::event::decode::THREAD_ID_BYTES_MAX;
use tollgate_core::event::record::Partition;
use tollgate_core::event::record::partition_of;

use crate::commands::shared::{Screen, start_quiet_logging};
use tollgate_operations::Topic;

#[derive(Debug, Subcommand)]
pub(super) enum StateCommand {
    /// A thread's state at the last checkpoint: hashes, codes and counters
    Show(show::ShowArgs),
    /// The largest or the oldest threads at the last checkpoint
    List(list::ListArgs),
    /// Move threads to the partitions of their new hash, after the events topic was given more partitions; without --execute, only say what
    /// would be moved
    Rekey(rekey::RekeyArgs),
    /// Have a thread forget what it remembers, stops included; without --execute, only say what would be published
    Reset(reset::ResetArgs),
}

/// Which thread is meant.
#[derive(Debug, Args)]
struct ThreadArgs {
    /// The thread
    #[arg(value_parser = read_thread_id)]
    thread_id: String,
    /// The thread's partition, if its producer does not use murmur2 [default: where murmur2 puts its id]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    partition: Option<u32>,
}

impl ThreadArgs {
    /// Returns the thread's partition in a topic.
    fn partition_in(&self, topic: Topic<'_>) -> anyhow::Result<Partition> {
        self.partition.map_or_else(|| Ok(partition_of(self.thread_id.as_bytes(), topic.partitions)), |number| topic.partition(number))
    }
}

pub(super) fn execute(command: &StateCommand, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    let kafka = &settings.kafka;
    match command {
        StateCommand::Show(args) => show::execute(args, kafka, screen),
        StateCommand::List(args) => list::execute(args, kafka, screen),
        StateCommand::Rekey(args) => rekey::execute(args, &settings, screen),
        StateCommand::Reset(args) => reset::execute(args, kafka),
    }
}

/// Prints a warning if the state is not that of the configured group.
fn warn_of_other_owner(kafka: &KafkaSettings, owner: &str) {
    if owner != kafka.state_owner() {
        say!("tollgate: this is the state of {owner} (group/topic of events), and this configuration's would be {}", kafka.state_owner());
    }
}

fn read_thread_id(text: &str) -> Result<String, String> {
    read_id(text, THREAD_ID_BYTES_MAX)
}

/// Reads the id of a thread or a turn.
fn read_id(text: &str, bytes_max: usize) -> Result<String, String> {
    match text.len() {
        0 => Err(format!("it is empty; write an id of 1 to {bytes_max} bytes")),
        bytes if bytes > bytes_max => Err(format!("it has {bytes} bytes; write an id of 1 to {bytes_max} bytes")),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_its_key_hashes_to_unless_it_is_said_otherwise() {
        let topic = Topic { name: "tollgate.state", partitions: 7 };
        let of = |partition| ThreadArgs { thread_id: "nightly-deploy".to_owned(), partition }.partition_in(topic);
        assert_eq!(of(None).unwrap(), partition_of(b"nightly-deploy", 7));
        assert_eq!(of(Some(6)).unwrap(), Partition(6));
        assert_eq!(of(Some(7)).unwrap_err().to_string(), "--partition 7: topic tollgate.state has 7 partitions; write 0 to 6");
        assert_eq!(topic.all().unwrap().len(), 7);
    }

    #[test]
    fn ids_are_bounded_as_in_events() {
        assert_eq!(read_thread_id("t").as_deref(), Ok("t"));
        assert_eq!(read_thread_id(&"x".repeat(THREAD_ID_BYTES_MAX)).unwrap().len(), THREAD_ID_BYTES_MAX);
        assert!(read_thread_id(&"é".repeat(THREAD_ID_BYTES_MAX / 2 + 1)).unwrap_err().contains("258 bytes"));
        assert!(read_thread_id("").unwrap_err().contains("empty"));
    }
}

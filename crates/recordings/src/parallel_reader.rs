//! Reading a file of records on all cores: one thread reads lines, and each of the others takes the records of its partitions, in order.
//!
//! ```text
//!                 ┌─▶ visitor of partitions 0, 2, 4 …
//! file ─▶ lines ──┤
//!                 └─▶ visitor of partitions 1, 3, 5 …
//! ```

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tollgate_core::event::decode::too_large;

use super::{Captured, Input, Line, LineFault, Order, Reader, read_line};

/// How many bytes of lines are handed over at once.
const BATCH_BYTES: usize = 256 * 1024;
/// How many batches may wait for a visitor.
const BATCHES_WAITING: usize = 4;

/// How many lines are read between two looks at how far it is.
const SHOW_EVERY: u64 = 1_024;

/// What is done with the records of some partitions.
pub trait Visitor: Send {
    /// Takes a record, of the line with this number.
    ///
    /// # Errors
    /// What is done with it cannot go on. The reading ends then.
    fn record(&mut self, number: u64, captured: &Captured<'_>) -> anyhow::Result<()>;

    /// Takes the fault of a line that holds no record.
    fn fault(&mut self, number: u64, fault: LineFault);
}

/// What is read, and how.
pub struct ParallelReader<'t> {
    /// The lines.
    pub input: Input,
    /// The reader of lines.
    pub reader: Reader,
    /// The topic of records that name none.
    pub topic: &'t str,
    /// How many bytes an event may have.
    pub event_bytes_max: usize,
    /// Is told now and then how many lines were read.
    pub show: Box<dyn FnMut(u64)>,
}

/// The result of reading a file.
#[derive(Debug)]
pub struct ReadFile<V> {
    /// The visitors, with what they have found.
    pub visitors: Vec<V>,
    /// The topics of the records that have an offset.
    pub topics: BTreeSet<String>,
    /// Why the file could not be read to its end, with the number of the line that could not be read.
    pub broken: Option<(u64, std::io::Error)>,
}

/// Returns how many visitors keep all cores busy.
pub fn visitors_max() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

impl std::fmt::Debug for ParallelReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl ParallelReader<'_> {
    /// Reads to the end, or as far as the file can be read. The records of a partition all go to the same visitor.
    ///
    /// # Errors
    /// A visitor could not go on.
    pub fn run<V: Visitor>(self, visitors: Vec<V>) -> anyhow::Result<ReadFile<V>> {
        let Self { input, reader, topic, event_bytes_max, show } = self;
        let count = visitors.len();
        thread::scope(|scope| {
            let (mut senders, mut workers) = (Vec::new(), Vec::new());
            for (index, visitor) in visitors.into_iter().enumerate() {
                let (sender, batches) = sync_channel(BATCHES_WAITING);
                let share = Share { index, count, reader: reader.again(), topic, order: Order::default(), visitor };
                senders.push(Queue { sender, batch: Batch::default() });
                workers.push(scope.spawn(move || share.run(&batches)));
            }
            let read = distribute(input, reader, event_bytes_max, senders, show);
            let visitors = workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow::anyhow!("a thread has ended"))?);
            let mut topics = BTreeSet::new();
            let mut visitors: Vec<V> = visitors
                .map(|ended| {
                    let (visitor, order) = ended?;
                    topics.extend(order.topics().map(str::to_owned));
                    Ok(visitor)
                })
                .collect::<anyhow::Result<_>>()?;
            if let Some(first) = visitors.first_mut() {
                read.faults.into_iter().for_each(|(number, fault)| first.fault(number, fault));
            }
            Ok(ReadFile { visitors, topics, broken: read.broken })
        })
    }
}

/// Lines on their way to a visitor.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The number of each line, and where it ends.
    lines: Vec<(u64, usize)>,
}

/// The way to a visitor.
struct Queue {
    sender: SyncSender<Batch>,
    batch: Batch,
}

impl Queue {
    /// Takes a line, and returns whether the visitor still takes lines.
    fn push(&mut self, number: u64, line: &[u8]) -> bool {
        self.batch.bytes.extend_from_slice(line);
        self.batch.lines.push((number, self.batch.bytes.len()));
        self.batch.bytes.len() < BATCH_BYTES || self.flush()
    }

    fn flush(&mut self) -> bool {
        let next = Batch { bytes: Vec::with_capacity(BATCH_BYTES), lines: Vec::with_capacity(self.batch.lines.len()) };
        self.sender.send(std::mem::replace(&mut self.batch, next)).is_ok()
    }
}

/// What the thread that reads has found itself.
#[derive(Default)]
struct Distributed {
    faults: Vec<(u64, LineFault)>,
    broken: Option<(u64, std::io::Error)>,
}

/// Reads lines and hands each to the visitor of its partition.
fn distribute(
    mut input: Input,
    mut reader: Reader,
    event_bytes_max: usize,
    mut queues: Vec<Queue>,
    mut show: Box<dyn FnMut(u64)>,
) -> Distributed {
    let bytes_max = reader.line_bytes_max(event_bytes_max);
    let (mut line, mut read) = (Vec::new(), Distributed::default());
    for number in 1_u64.. {
        if number.is_multiple_of(SHOW_EVERY) {
            show(number);
        }
        match read_line(&mut input, &mut line, bytes_max) {
            Ok(Line::End) => break,
            Ok(Line::Whole) if line.trim_ascii().is_empty() => {}
            Ok(Line::Whole) => {
                let owner = owner(reader.partition(&line), queues.len());
                // A visitor that takes no more lines has failed, and says so itself.
                if !queues.get_mut(owner).is_some_and(|queue| queue.push(number, &line)) {
                    return read;
                }
            }
            Ok(Line::TooLong) => read.faults.push((number, too_large(format!("more than {bytes_max} bytes")).into())),
            Err(error) => {
                read.broken = Some((number, error));
                break;
            }
        }
    }
    queues.iter_mut().for_each(|queue| {
        queue.flush();
    });
    read
}

/// Returns which of the visitors has a partition.
fn owner(partition: i32, visitors: usize) -> usize {
    usize::try_from(partition).unwrap_or_default() % visitors.max(1)
}

/// A visitor at work.
struct Share<'t, V> {
    index: usize,
    count: usize,
    reader: Reader,
    topic: &'t str,
    order: Order,
    visitor: V,
}

impl<V: Visitor> Share<'_, V> {
    fn run(mut self, batches: &Receiver<Batch>) -> anyhow::Result<(V, Order)> {
        for Batch { bytes, lines } in batches {
            let mut start = 0;
            for (number, end) in lines {
                self.line(number, bytes.get(start..end).unwrap_or_default())?;
                start = end;
            }
        }
        Ok((self.visitor, self.order))
    }

    fn line(&mut self, number: u64, line: &[u8]) -> anyhow::Result<()> {
        let captured = match self.reader.read(line) {
            Ok(captured) => captured,
            Err(fault) => {
                self.visitor.fault(number, fault);
                return Ok(());
            }
        };
        // The reader of the file only looks at how a line begins.
        anyhow::ensure!(
            owner(captured.partition.unwrap_or_default(), self.count) == self.index,
            "line {number} begins as a captured record and is an event; name the format: --format events"
        );
        match self.order.note(&captured, self.topic) {
            Ok(()) => self.visitor.record(number, &captured),
            Err(fault) => {
                self.visitor.fault(number, fault);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use std::io::BufReader;

    /// Notes where each line went.
    #[derive(Debug, Default)]
    struct Notes {
        records: Vec<(u64, Option<i32>, Option<i64>)>,
        faults: Vec<(u64, &'static str)>,
    }

    impl Visitor for Notes {
        fn record(&mut self, number: u64, captured: &Captured<'_>) -> anyhow::Result<()> {
            self.records.push((number, captured.partition, captured.offset));
            Ok(())
        }

        fn fault(&mut self, number: u64, fault: LineFault) {
            self.faults.push((number, fault.code));
        }
    }

    fn parallel_reader(lines: String, format: Format, visitors: usize) -> anyhow::Result<ReadFile<Notes>> {
        let input: Input = BufReader::new(Box::new(std::io::Cursor::new(lines.into_bytes())));
        let mut shown = 0;
        let show = Box::new(move |number: u64| {
            assert!(number > shown);
            shown = number;
        });
        let parallel_reader = ParallelReader { input, reader: Reader::new(format), topic: "t", event_bytes_max: 1_000, show };
        parallel_reader.run(std::iter::repeat_with(Notes::default).take(visitors).collect())
    }

    fn envelope(partition: i32, offset: i64) -> String {
        format!(r#"{{"topic":"t","partition":{partition},"offset":{offset},"timestamp":1,"key":null,"headers":[],"value":"{{}}"}}"#)
    }

    #[test]
    fn each_partition_has_one_visitor_and_keeps_its_order() {
        let lines: Vec<_> = (0..9_000).map(|at| envelope(at % 7, i64::from(at / 7))).collect();
        let swept = parallel_reader(lines.join("\n"), Format::Auto, 3).unwrap();
        assert!(swept.broken.is_none());
        for (index, notes) in swept.visitors.iter().enumerate() {
            assert!(notes.faults.is_empty());
            assert!(notes.records.iter().all(|(_, partition, _)| partition.unwrap() as usize % 3 == index));
            assert!(notes.records.is_sorted_by_key(|(number, _, _)| *number));
        }
        assert_eq!(swept.visitors.iter().map(|notes| notes.records.len()).sum::<usize>(), 9_000);
    }

    #[test]
    fn members_in_another_order_lead_to_the_same_visitor() {
        let other = r#"{"partition":1,"topic":"t","offset":9,"timestamp":1,"key":null,"headers":[],"value":"{}"}"#;
        let swept = parallel_reader([envelope(1, 8), other.to_owned()].join("\n"), Format::Auto, 2).unwrap();
        assert_eq!(swept.visitors[1].records, [(1, Some(1), Some(8)), (2, Some(1), Some(9))]);
    }

    #[test]
    fn faults_have_their_lines() {
        let lines = [envelope(0, 5), envelope(0, 5), "x".repeat(2_000_000), "{".to_owned(), envelope(3, 1)];
        let swept = parallel_reader(lines.join("\n"), Format::Envelope, 2).unwrap();
        let mut faults: Vec<_> = swept.visitors.iter().flat_map(|notes| &notes.faults).copied().collect();
        faults.sort_unstable();
        assert_eq!(faults, [(2, "offset_repeated"), (3, "value_too_large"), (4, "record_not_json")]);
    }

    #[test]
    fn an_event_that_begins_as_a_record_is_not_mistaken_for_one() {
        let line = r#"{"topic":"t","partition":1,"offset":1,"type":"turn_start","thread_id":"a"}"#.to_owned();
        let error = parallel_reader(line.clone(), Format::Auto, 2).unwrap_err();
        assert!(error.to_string().contains("--format events"), "{error}");
        assert_eq!(parallel_reader(line, Format::Events, 2).unwrap().visitors[0].records.len(), 1);
    }
}

//! What lanes want to know of policy servers: questions out, answers back to the events that wait for them.
//!
//! Nobody waits here. A question is handed over and its answer heard of whenever it comes; one for a partition that has been given up since
//! belongs to nobody.

use std::sync::mpsc::{Receiver, Sender, channel};

use tollgate_core::guardrail::{Answer, Question};
use tollgate_core::processor::Resumed;
use tollgate_core::record::{Offset, Partition};

use super::Assignment;
use super::message::headers_of;

/// Which event an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) partition: Partition,
    /// Which assignment of the partition it is.
    pub(super) epoch: u64,
    pub(super) offset: Offset,
}

/// Where answers come in.
#[derive(Debug)]
pub(super) struct Questions {
    sender: Sender<(Ticket, Answer)>,
    answers: Receiver<(Ticket, Answer)>,
}

impl Default for Questions {
    fn default() -> Self {
        let (sender, answers) = channel();
        Self { sender, answers }
    }
}

impl Assignment {
    pub(super) fn ask(&self, ticket: Ticket, question: Question) {
        self.parts.remotes.ask(question.provider, question.body, ticket, &self.questions.sender);
    }

    /// Takes the answers that have come, and decides what they let be decided.
    pub(super) fn hear_answers(&mut self) {
        while let Ok((ticket, answer)) = self.questions.answers.try_recv() {
            let Some(held) = self.held.get_mut(&ticket.partition).filter(|held| held.epoch == ticket.epoch) else { continue };
            held.lane.answer(ticket.offset, answer);
            while self.resume(ticket) {}
        }
    }

    /// Goes on with one event of a partition that can; whether there was one.
    fn resume(&mut self, Ticket { partition, epoch, .. }: Ticket) -> bool {
        let Some(held) = self.held.get_mut(&partition) else { return false };
        match held.lane.resume(&self.parts.policy, &mut self.out) {
            None => return false,
            Some(Resumed::Asks(offset, question)) => self.ask(Ticket { partition, epoch, offset }, question),
            Some(Resumed::Decided(record, applied)) => record.lend(|record| {
                let due = self.publish(record, applied, epoch, || headers_of(record));
                self.enter(partition, |ledger| ledger.decide(record.offset, due));
            }),
        }
        true
    }
}

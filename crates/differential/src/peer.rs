//! Others that are asked: programs that run as long as the fuzzer, and answer each line with a line.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::Fault;

/// A program that reads a JSON value a line and writes one for each.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    child: Child,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a program. It has to say `ready` as soon as it has all that it needs. `install` names the packages that bring it.
    ///
    /// # Errors
    /// If it cannot be started, or ends without saying so.
    pub fn start(name: &'static str, program: &str, arguments: &[&str], install: &str) -> Result<Self, Fault> {
        let missing = |why: &dyn std::fmt::Display| format!("{name} cannot be asked ({why}); please install {install}");
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| missing(&error))?;
        let questions = BufWriter::new(child.stdin.take().ok_or("there is a pipe")?);
        let mut answers = BufReader::new(child.stdout.take().ok_or("there is a pipe")?);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        if line.trim() != "ready" {
            return Err(missing(&"it does not start").into());
        }
        Ok(Self { name, child, questions, answers })
    }

    /// Returns the name for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the answers to some questions, in their order. All of them have to fit into a pipe (64 KiB).
    ///
    /// # Errors
    /// If the program ended, or answers something else than JSON.
    pub fn ask<'q>(&mut self, questions: impl IntoIterator<Item = &'q str>) -> Result<Vec<Value>, Fault> {
        let mut count = 0;
        for question in questions {
            writeln!(self.questions, "{}", Value::from(question))?;
            count += 1;
        }
        self.questions.flush()?;
        let mut answers = Vec::with_capacity(count);
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(format!("{} ended", self.name).into());
            }
            answers.push(serde_json::from_str(&line)?);
        }
        Ok(answers)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

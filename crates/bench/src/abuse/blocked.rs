//! From an event to the first blocked call on every partition: a user calls on all of them all the time, offends once, and is suspended.

use std::time::Instant;

use anyhow::{Context as _, Result};

use super::stream::{PARTITIONS, Stream};
use super::{Delays, settings};
use crate::Session;

/// How many users are suspended, and how many before those that count.
const USERS: usize = 60;
const WARM_UP: usize = 10;

impl Session {
    /// Returns how long after the offence of a user the first blocked call came, for each partition of each user.
    pub(super) fn blocked(&self) -> Result<Delays> {
        self.with_traffic(&settings::counting(true), PARTITIONS, self.mix(), |bed| {
            let mut stream = Stream::new(self, bed.load.topics)?;
            let mut delays = Vec::new();
            for number in 0..USERS + WARM_UP {
                let user = format!("suspect-{number}");
                stream.until_all(&user, "allow")?;
                let start = Instant::now();
                let partition = i32::try_from(number % PARTITIONS as usize)?;
                stream.callers.offend(&user, &format!("{user}/offence"), number, Some(partition))?;
                let first = stream.until_all(&user, "subject_suspended")?;
                if number >= WARM_UP {
                    delays.extend(first.into_iter().map(|first| (first - start).as_secs_f64() * 1e3));
                }
                self.progress.show("suspending", number, USERS + WARM_UP);
            }
            self.progress.clear();
            Delays::of(delays, 0).context("nobody was suspended")
        })
    }
}

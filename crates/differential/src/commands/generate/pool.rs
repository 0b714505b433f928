//! Lines that were allowed, as far as each shows something new.

use fastrand::Rng;

/// The most lines that are kept.
const LINES_MAX: usize = 20_000;

/// The number of features that are told apart, in bits.
const FEATURE_BITS: usize = 20;

/// How many characters in a row are one feature.
const FEATURE_CHARS: usize = 4;

/// Lines that were allowed. A line is kept if it has characters in a row that no line before had, letters being all one.
#[derive(Debug)]
pub(super) struct Pool {
    lines: Vec<String>,
    seen: Vec<bool>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { lines: Vec::new(), seen: vec![false; 1 << FEATURE_BITS] }
    }
}

impl Pool {
    /// Returns two lines.
    pub(super) fn pick(&self, rng: &mut Rng) -> Option<(&str, &str)> {
        // New lines are tried more often than old ones.
        let recent = self.lines.len().saturating_sub(200);
        let one = if rng.u8(..3) == 0 { rng.choice(self.lines.get(recent..).unwrap_or_default()) } else { rng.choice(&self.lines) };
        Some((one?, rng.choice(&self.lines)?))
    }

    /// Keeps a line if it shows something new, and a few that do not.
    pub(super) fn keep(&mut self, rng: &mut Rng, line: &str) {
        let is_new = self.mark(line);
        if !is_new && rng.u8(..) != 0 {
            return;
        }
        if self.lines.len() < LINES_MAX {
            self.lines.push(line.to_owned());
        } else {
            let place = rng.usize(..LINES_MAX);
            if let Some(old) = self.lines.get_mut(place) {
                line.clone_into(old);
            }
        }
    }

    fn mark(&mut self, line: &str) -> bool {
        let mut is_new = false;
        let mut classes: Vec<char> = Vec::with_capacity(line.len());
        for char in line.chars() {
            let class = match char {
                'a'..='z' | 'A'..='Z' | '_' | '.' | '/' => 'a',
                '0'..='9' => '0',
                other => other,
            };
            if class != 'a' || classes.last() != Some(&'a') {
                classes.push(class);
            }
        }
        for window in classes.windows(FEATURE_CHARS) {
            let hash = window
                .iter()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &char| (hash ^ u64::from(u32::from(char))).wrapping_mul(0x0100_0000_01b3));
            let place = usize::try_from(hash >> (64 - FEATURE_BITS)).unwrap_or(0);
            if let Some(seen) = self.seen.get_mut(place)
                && !*seen
            {
                *seen = true;
                is_new = true;
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_kept_if_it_shows_something_new() {
        let (mut pool, mut rng) = (Pool::default(), Rng::with_seed(1));
        assert!(pool.mark("ls -la; ls"));
        assert!(!pool.mark("cat -n; echo"), "it differs in letters only");
        assert!(pool.mark("ls -la && ls"));
        pool.keep(&mut rng, "ls | ls | ls");
        assert_eq!(pool.pick(&mut rng), Some(("ls | ls | ls", "ls | ls | ls")));
    }
}

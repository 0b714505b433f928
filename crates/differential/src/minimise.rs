//! Makes the example of a failure small.

/// The most texts that are tried.
const TRIES_MAX: usize = 400;

/// Returns the shortest text that was found for which `fails` is true, as it has to be for the given one.
///
/// # Errors
/// If a text cannot be tried.
pub fn minimise<E>(text: &str, mut fails: impl FnMut(&str) -> Result<bool, E>) -> Result<String, E> {
    let mut best: Vec<char> = text.chars().collect();
    let mut tries = 0;
    let mut size = best.len().div_ceil(2).max(1);
    loop {
        let mut shortened = false;
        let mut place = 0;
        while place < best.len() && tries < TRIES_MAX {
            let candidate: String =
                best.iter().enumerate().filter(|(at, _)| !(place..place + size).contains(at)).map(|(_, char)| char).collect();
            tries += 1;
            if fails(&candidate)? {
                best = candidate.chars().collect();
                shortened = true;
            } else {
                place += size;
            }
        }
        if tries >= TRIES_MAX || (size == 1 && !shortened) {
            return Ok(best.into_iter().collect());
        }
        if !shortened || size > 1 {
            size = (size / 2).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn minimised(line: &str, needed: &[char]) -> String {
        let mut rest = |candidate: &str| {
            let mut wanted = needed.iter().peekable();
            for char in candidate.chars() {
                wanted.next_if(|&&next| next == char);
            }
            Ok::<_, Infallible>(wanted.peek().is_none())
        };
        minimise(line, &mut rest).unwrap()
    }

    #[test]
    fn only_what_is_needed_stays() {
        assert_eq!(minimised("one two three four five", &['w', 'f', 'v']), "wfv");
        assert_eq!(minimised("abc", &[]), "");
        assert_eq!(minimised("abc", &['a', 'b', 'c']), "abc");
    }
}

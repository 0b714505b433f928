//! Making an example of a failure small.

/// Takes pieces out of a text as long as it still fails, and returns the smallest text that was found. The time is bounded by the square of
/// its length.
pub fn minimise(text: &str, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut smallest: Vec<char> = text.chars().collect();
    let mut size = smallest.len() / 2;
    while size > 0 {
        let mut at = 0;
        let mut is_smaller = false;
        while at + size <= smallest.len() {
            let mut candidate = smallest.clone();
            candidate.drain(at..at + size);
            if fails(&candidate.iter().collect::<String>()) {
                smallest = candidate;
                is_smaller = true;
            } else {
                at += 1;
            }
        }
        if !is_smaller {
            size /= 2;
        }
    }
    smallest.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_does_not_matter_is_taken_away() {
        assert_eq!(super::minimise("http://a.b/x?needle=1#y", |text| text.contains("needle")), "needle");
        assert_eq!(super::minimise("ab", |text| text == "ab"), "ab");
    }
}

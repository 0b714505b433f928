//! Reading bounds and partitions of a capture.

use crate::commands::shared::read_since;
use tollgate_operations::capture::{Bound, Partitions};

/// Reads a bound.
pub(super) fn read_bound(text: &str) -> Result<Bound, String> {
    match text {
        "beginning" => return Ok(Bound::Beginning),
        "end" | "now" => return Ok(Bound::End),
        _ => {}
    }
    if let Some((partition, offset)) = text.split_once('@') {
        let place = partition.parse().ok().zip(offset.parse().ok()).filter(|(partition, offset)| *partition >= 0 && *offset >= 0);
        let (partition, offset) = place.ok_or("found no partition and offset; write PARTITION@OFFSET, such as 3@120")?;
        return Ok(Bound::Offset(partition, offset));
    }
    read_since(text).map(Bound::Time).map_err(|fault| format!("{fault}; or beginning, end, or PARTITION@OFFSET"))
}

/// Reads a partition, or a range such as 3-5.
pub(super) fn read_partitions(text: &str) -> Result<Partitions, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok()).filter(|(first, last): &(i32, i32)| 0 <= *first && first <= last);
    range
        .map(|(first, last)| Partitions(first..=last))
        .ok_or_else(|| "it is no partition; write numbers or ranges, such as 0,3-5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_read() {
        assert_eq!(read_partitions("3"), Ok(Partitions(3..=3)));
        assert_eq!(read_partitions("3-5"), Ok(Partitions(3..=5)));
        for text in ["", "-1", "5-3", "a", "1-", "1-2-3"] {
            assert!(read_partitions(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_are_read() {
        assert_eq!(read_bound("beginning"), Ok(Bound::Beginning));
        assert_eq!(read_bound("now"), Ok(Bound::End));
        assert_eq!(read_bound("3@120"), Ok(Bound::Offset(3, 120)));
        assert_eq!(read_bound("2026-11-22T10:36:49.768Z"), Ok(Bound::Time(1_795_343_809_768)));
        assert!(matches!(read_bound("24h"), Ok(Bound::Time(_))));
        for text in ["", "3", "3@", "@1", "-1@2", "3@x", "tomorrow", "3:120"] {
            assert!(read_bound(text).is_err(), "{text}");
        }
    }
}

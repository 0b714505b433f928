//! Makes filler text that reads like what agents say, read and write. It is made once and copied from: a generator that composed text per
//! event would be slower than the worker that it loads.

use super::Random;

/// The bytes of a block. Text is cut between blocks, so that no escape is torn apart.
const BLOCK: usize = 64;
const BLOCKS: usize = 2_048;

const WORDS: [&str; 40] = [
    "the",
    "cart",
    "total",
    "before",
    "discount",
    "applies",
    "module",
    "component",
    "reads",
    "from",
    "cache",
    "when",
    "request",
    "returns",
    "value",
    "config",
    "parser",
    "writes",
    "index",
    "of",
    "items",
    "and",
    "keeps",
    "order",
    "per",
    "thread",
    "customer",
    "invoice",
    "shipping",
    "rate",
    "test",
    "passes",
    "again",
    "branch",
    "merge",
    "review",
    "function",
    "handles",
    "empty",
    "list",
];

/// Characters that a JSON string may hold besides letters, escaped as they have to be there.
const ESCAPES: [&str; 5] = ["\\n", "\\\"", "\\t", "\\u00e9", "\\\\"];

/// Filler for arguments and results, cut from text that was drawn once.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// Letters, spaces and full stops, which may stand in a JSON string, and in one inside another.
    plain: Vec<u8>,
    /// Text with escapes, for a JSON string.
    escaped: Vec<u8>,
}

impl Text {
    pub(super) fn new(random: &mut Random) -> Self {
        Self { plain: corpus(random, 0.0), escaped: corpus(random, 0.12) }
    }

    /// Appends so many bytes of letters.
    pub(super) fn plain(&self, random: &mut Random, bytes: usize, out: &mut Vec<u8>) {
        append(&self.plain, random.below(BLOCKS), bytes, out);
    }

    /// Appends so many bytes of the inside of a JSON string.
    pub(super) fn escaped(&self, random: &mut Random, bytes: usize, out: &mut Vec<u8>) {
        append(&self.escaped, random.below(BLOCKS), bytes, out);
    }
}

fn corpus(random: &mut Random, escapes: f64) -> Vec<u8> {
    let mut text = Vec::with_capacity(BLOCK * BLOCKS);
    for block in 1..=BLOCKS {
        while text.len() < block * BLOCK {
            let from = if random.chance(escapes) { &ESCAPES[..] } else { &WORDS[..] };
            let word = from.get(random.below(from.len())).copied().unwrap_or_default();
            if text.len() + word.len() + 1 > block * BLOCK {
                text.resize(block * BLOCK, b'.');
            } else {
                text.extend_from_slice(word.as_bytes());
                text.push(b' ');
            }
        }
    }
    text
}

/// Appends whole blocks from a place on, around the end if need be, and letters for the rest.
fn append(corpus: &[u8], start: usize, bytes: usize, out: &mut Vec<u8>) {
    let end = out.len() + bytes;
    let mut at = start * BLOCK;
    while end - out.len() >= BLOCK {
        let whole = (end - out.len()) / BLOCK * BLOCK;
        let from = corpus.get(at..).unwrap_or_default();
        let taken = from.get(..whole.min(from.len())).unwrap_or_default();
        out.extend_from_slice(taken);
        at = 0;
    }
    out.resize(end, b'x');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_is_the_inside_of_a_json_string() {
        let mut random = Random::new(3);
        let text = Text::new(&mut random);
        for bytes in (0..200).chain([BLOCK * BLOCKS + 77]) {
            for escaped in [false, true] {
                let mut out = b"\"".to_vec();
                if escaped {
                    text.escaped(&mut random, bytes, &mut out)
                } else {
                    text.plain(&mut random, bytes, &mut out)
                }
                out.push(b'"');
                assert_eq!(out.len(), bytes + 2);
                serde_json::from_slice::<String>(&out).unwrap();
            }
        }
    }
}

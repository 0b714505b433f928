//! Keyed permutations of short lists of digits, each digit with a radix of its own: format-preserving encryption.
//!
//! A list is split into two halves. In every round a digest of one half, under the key, is added to the other half, digit by digit. Each
//! round can be undone, so two different lists never become the same list, whatever the digest is. A single digit is permuted as a number,
//! by the same construction over its bits.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

/// The rounds for lists that are short enough to be guessed in halves.
const ROUNDS: u8 = 10;

/// The rounds for lists of which each half is longer than a digest. Four suffice to hide a half that never repeats by chance.
const ROUNDS_LONG: u8 = 4;

/// The digits of a half from which on it counts as long: 64 digits of a radix of 90 hold more than 400 bits.
const LONG: usize = 64;

/// A family of permutations, one for each list of radices.
#[derive(Clone)]
pub(super) struct Permutation {
    /// The digest's state behind a block that holds the key.
    keyed: Sha256,
}

impl std::fmt::Debug for Permutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permutation").finish_non_exhaustive()
    }
}

/// A digit and the number of values that it may have, which is 1 at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digit {
    pub(super) value: u32,
    pub(super) radix: u32,
}

impl Permutation {
    /// Returns the permutations of a key for one purpose. Those of two purposes have nothing to do with each other.
    pub(super) fn new(key: &[u8], purpose: &str) -> Self {
        let mut block = [0; 64];
        let mut mac = Hmac::<Sha256>::new(&key_block(key));
        mac.update(b"tollgate redact 1\0");
        mac.update(purpose.as_bytes());
        block.iter_mut().zip(mac.finalize().into_bytes()).for_each(|(place, byte)| *place = byte);
        Self { keyed: Sha256::new_with_prefix(block) }
    }

    /// Permutes a list of digits in place. Each stays below its radix.
    pub(super) fn apply(&self, digits: &mut [Digit]) {
        if let [digit] = digits {
            digit.value = self.permute_number(digit.value, digit.radix);
            return;
        }
        let count = digits.len();
        let (left, right) = digits.split_at_mut(count / 2);
        let rounds = if left.len() >= LONG { ROUNDS_LONG } else { ROUNDS };
        for round in 0..rounds {
            if round % 2 == 0 { self.add(round, count, left, right) } else { self.add(round, count, right, left) }
        }
    }

    /// Adds the digest of `from` to `to`, digit by digit.
    fn add(&self, round: u8, count: usize, from: &[Digit], to: &mut [Digit]) {
        // The length comes first, so that no text that is hashed is the beginning of another one.
        let mut text = Vec::with_capacity(9 + 4 * from.len());
        text.extend((count as u64).to_be_bytes());
        text.push(round);
        from.iter().for_each(|digit| match u8::try_from(digit.value) {
            Ok(byte) if digit.radix <= SMALL => text.push(byte),
            _ => text.extend(digit.value.to_be_bytes()),
        });
        let seed: [u8; 32] = self.keyed.clone().chain_update(text).finalize().into();
        let mut stream = Stream { keyed: &self.keyed, seed, block: seed, used: 0, counter: 0 };
        for digit in to {
            // The remainder of two bytes is even enough for a small radix: each value is at most one part in 250 more likely than another.
            let mask = if digit.radix <= SMALL { u32::from(u16::from_be_bytes(stream.next())) } else { u32::from_be_bytes(stream.next()) };
            let sum = u64::from(digit.value) + u64::from(mask % digit.radix);
            digit.value = u32::try_from(sum % u64::from(digit.radix)).unwrap_or_default();
        }
    }

    /// Permutes the numbers below `radix`. It permutes the numbers of so many bits, and again where the result is not below the radix. That
    /// ends, because the way leads back to the number in the end.
    fn permute_number(&self, value: u32, radix: u32) -> u32 {
        let half_bits = (u32::BITS - radix.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
        let mask = (1_u32 << half_bits) - 1;
        let mut number = value;
        loop {
            let (mut left, mut right) = (number >> half_bits, number & mask);
            for round in 0..ROUNDS {
                let digest: [u8; 32] = self
                    .keyed
                    .clone()
                    .chain_update(1_u64.to_be_bytes())
                    .chain_update([round])
                    .chain_update(radix.to_be_bytes())
                    .chain_update(right.to_be_bytes())
                    .finalize()
                    .into();
                let added = digest.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes)) & mask;
                (left, right) = (right, left ^ added);
            }
            number = left << half_bits | right;
            if number < radix {
                return number;
            }
        }
    }
}

/// The largest radix of digits that take one byte.
const SMALL: u32 = 256;

/// The bytes that a digest is stretched to: the digest itself, and then digests of it with a counter.
struct Stream<'k> {
    keyed: &'k Sha256,
    seed: [u8; 32],
    block: [u8; 32],
    used: usize,
    counter: u64,
}

impl Stream<'_> {
    /// Returns the next bytes. Those at the end of a block that are too few are skipped.
    fn next<const BYTES: usize>(&mut self) -> [u8; BYTES] {
        if self.used + BYTES > self.block.len() {
            (self.used, self.counter) = (0, self.counter + 1);
            let stretched = self.keyed.clone().chain_update(u64::MAX.to_be_bytes()).chain_update(self.seed);
            self.block = stretched.chain_update(self.counter.to_be_bytes()).finalize().into();
        }
        let bytes = self.block.get(self.used..).and_then(|rest| rest.first_chunk::<BYTES>()).copied().unwrap_or([0; BYTES]);
        self.used += BYTES;
        bytes
    }
}

/// Returns a key of any length as the block that HMAC takes. One that is longer than a block counts as its digest.
fn key_block(key: &[u8]) -> hmac::digest::Key<Hmac<Sha256>> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    let digest: [u8; 32] = Sha256::digest(key).into();
    let bytes = if key.len() > block.len() { digest.as_slice() } else { key };
    block.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    block
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn all_of(radices: &[u32]) -> Vec<Vec<Digit>> {
        radices.iter().fold(vec![Vec::new()], |lists, radix| {
            let with = |list: &Vec<Digit>, value| [list.as_slice(), &[Digit { value, radix: *radix }]].concat();
            lists.iter().flat_map(|list| (0..*radix).map(move |value| with(list, value))).collect()
        })
    }

    #[test]
    fn every_list_of_small_radices_gets_a_list_of_its_own() {
        let permutation = Permutation::new(b"key", "test");
        for radices in
            [&[1][..], &[2], &[9], &[91], &[300], &[9, 9], &[91, 91], &[9, 10, 9], &[1, 7, 1, 13], &[2, 300, 3], &[10, 10, 10, 10]]
        {
            let lists = all_of(radices);
            let mut moved = 0;
            let images: HashSet<Vec<u32>> = lists
                .iter()
                .map(|list| {
                    let mut image = list.clone();
                    permutation.apply(&mut image);
                    assert!(image.iter().all(|digit| digit.value < digit.radix));
                    moved += usize::from(image != *list);
                    image.iter().map(|digit| digit.value).collect()
                })
                .collect();
            assert_eq!(images.len(), lists.len(), "{radices:?}");
            assert!(lists.len() < 9 || moved * 10 > lists.len() * 8, "{moved} of {} move: {radices:?}", lists.len());
        }
    }

    #[test]
    fn one_digit_changes_the_whole_of_a_long_list() {
        let permutation = Permutation::new(b"key", "test");
        for length in [8, 40, 1_000] {
            let image = |first| {
                let mut list: Vec<_> = (0..length).map(|_| Digit { value: 5, radix: 91 }).collect();
                list[0].value = first;
                permutation.apply(&mut list);
                list
            };
            let (one, other) = (image(1), image(2));
            let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
            assert!(same * 3 <= length, "{same} of {length} digits are the same");
        }
    }

    #[test]
    fn keys_and_purposes_have_permutations_of_their_own() {
        let image = |key: &[u8], purpose| {
            let mut list = vec![Digit { value: 1, radix: 91 }; 12];
            Permutation::new(key, purpose).apply(&mut list);
            list
        };
        let images = [image(b"a", "x"), image(b"b", "x"), image(b"a", "y"), image(&[0; 100], "x"), image(&[1; 100], "x")];
        assert!(images.iter().enumerate().all(|(at, one)| images.iter().skip(at + 1).all(|other| one != other)));
        assert_eq!(image(b"a", "x"), images[0]);
    }
}

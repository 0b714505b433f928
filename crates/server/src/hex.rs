//! Reads hex digits.

/// Returns the bytes of a text of hex digits, two for each byte; `None` for any other text.
pub(crate) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.len() == 2 * N && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then_some(())?;
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_and_nothing_else() {
        assert_eq!(bytes::<2>("00fF"), Some([0, 255]));
        for wrong in ["00f", "00fff", "00fg", "+0+0", ""] {
            assert_eq!(bytes::<2>(wrong), None, "{wrong}");
        }
    }
}

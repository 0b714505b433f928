//! Decodes `$'…'`, the escapes of ANSI C.

/// Returns what the text between `$'` and `'` stands for. As in bash, a NUL ends it.
#[must_use]
pub fn decode(text: &str) -> String {
    let mut decoded: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        decoded.extend_from_slice(plain.as_bytes());
        let mut chars = escaped.chars();
        let Some(kind) = chars.next() else {
            decoded.push(b'\\');
            rest = "";
            break;
        };
        rest = chars.as_str();
        if !escape(kind, &mut rest, &mut decoded) {
            rest = "";
            break;
        }
    }
    decoded.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Decodes one escape; returns false if it ends the text.
fn escape(kind: char, rest: &mut &str, decoded: &mut Vec<u8>) -> bool {
    let simple = match kind {
        'a' => 0x07,
        'b' => 0x08,
        'e' | 'E' => 0x1b,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        '\'' => b'\'',
        '"' => b'"',
        '?' => b'?',
        _ => 0,
    };
    if simple != 0 {
        decoded.push(simple);
        return true;
    }
    let value = match kind {
        '0'..='7' => {
            let first = kind.to_digit(8).unwrap_or_default();
            let (more, digits) = number(rest, 8, 2);
            // Octal beyond a byte wraps, as in bash.
            Some((first * 8_u32.pow(digits) + more) & 0xff).map(|byte| (byte, true))
        }
        'x' => match number(rest, 16, 2) {
            (_, 0) => None,
            (byte, _) => Some((byte, true)),
        },
        'u' | 'U' => match number(rest, 16, if kind == 'u' { 4 } else { 8 }) {
            (_, 0) => None,
            (code, _) => Some((code, code < 0x80)),
        },
        'c' => {
            let mut chars = rest.chars();
            let control = chars.next().map(|char| (u32::from(char) & 0x1f, true));
            *rest = chars.as_str();
            control
        }
        _ => None,
    };
    match value {
        Some((0, _)) => return false,
        Some((byte, true)) => decoded.push(u8::try_from(byte).unwrap_or(b'?')),
        Some((code, false)) => {
            let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            decoded.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None => {
            // Unknown escapes keep their backslash.
            decoded.push(b'\\');
            decoded.extend_from_slice(kind.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    true
}

/// Takes up to so many digits: the number and how many they were.
fn number(rest: &mut &str, radix: u32, digits_max: u32) -> (u32, u32) {
    let mut chars = rest.chars();
    let (mut value, mut digits) = (0_u32, 0);
    while digits < digits_max {
        let mut ahead = chars.clone();
        let Some(digit) = ahead.next().and_then(|char| char.to_digit(radix)) else { break };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        chars = ahead;
        digits += 1;
    }
    *rest = chars.as_str();
    (value, digits)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn escapes_are_decoded_as_bash_does() {
        let cases = [
            ("plain", "plain"),
            (r"\x72m", "rm"),
            (r"\162\155", "rm"),
            (r"\u0072\U0000006d", "rm"),
            (r"a\'b\\c\n", "a'b\\c\n"),
            (r"\xc3\xa9", "é"),
            (r"\x", r"\x"),
            (r"\q", r"\q"),
            (r"rm\0hidden", "rm"),
            (r"\cA", "\u{1}"),
            ("end\\", "end\\"),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}

//! Stand-ins for values that are not JSON. They are refused at the same byte for the same reason, and hold nothing of the value but its
//! signs: letters are written as `x`, digits as `1`.

use tollgate_json::{SyntaxError, SyntaxErrorKind};

/// Returns the stand-in of a text that is not JSON, with the error at which reading it ends; without one it is not UTF-8.
pub(super) fn stand_in(text: &[u8], error: Option<SyntaxError>) -> Vec<u8> {
    let Some(error) = error else { return not_utf8(text) };
    let (read, rest) = text.split_at_checked(error.at).unwrap_or((text, b""));
    let mut out = Vec::with_capacity(text.len());
    write_read(read, &mut out);
    match (error.kind, rest) {
        (SyntaxErrorKind::UnexpectedEnd, _) => write_cut_escape(rest, &mut out),
        (SyntaxErrorKind::UnknownEscape, _) => out.push(b'\\'),
        (SyntaxErrorKind::IntegerTooLong, _) => {
            let is_part = |byte: &&u8| **byte == b'-' || byte.is_ascii_digit();
            out.extend(rest.iter().take_while(is_part).map(|byte| if *byte == b'-' { b'-' } else { b'1' }));
        }
        (SyntaxErrorKind::ControlCharacter | SyntaxErrorKind::TooDeep | SyntaxErrorKind::TooManyValues, [first, ..]) => out.push(*first),
        (_, [_, ..]) => out.push(b'?'),
        (_, []) => {}
    }
    out.resize(text.len(), b'x');
    if error.kind == SyntaxErrorKind::ControlCharacter && rest.len() > 1 {
        // The end of the string is found before what stands in it.
        out.pop();
        out.push(b'"');
    }
    out
}

/// Writes what was read before the error: signs and literals as they are, anything in strings and numbers without its meaning.
fn write_read(read: &[u8], out: &mut Vec<u8>) {
    let (mut in_string, mut escaped, mut hex) = (false, false, 0);
    for byte in read {
        let shown = match byte {
            _ if hex > 0 => {
                hex -= 1;
                b'0'
            }
            b'u' if escaped => {
                hex = 4;
                b'u'
            }
            _ if escaped => *byte,
            b'\\' if in_string => b'\\',
            b'"' => b'"',
            _ if in_string => b'x',
            b'0'..=b'9' => b'1',
            _ => *byte,
        };
        if *byte == b'"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && !escaped && *byte == b'\\';
        out.push(shown);
    }
}

/// Writes an escape that the end of the text cuts off.
fn write_cut_escape(rest: &[u8], out: &mut Vec<u8>) {
    out.extend(rest.iter().enumerate().map(|(at, byte)| if at < 2 { *byte } else { b'0' }));
}

/// Returns a text of that length that is not UTF-8 from the same byte on.
fn not_utf8(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'x'; text.len()];
    if let Err(error) = std::str::from_utf8(text) {
        out.get_mut(error.valid_up_to()).into_iter().for_each(|byte| *byte = 0xff);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::Parser;

    #[test]
    fn the_error_stays_at_its_place_and_the_contents_do_not() {
        let long = format!("{{\"anna\": -{}}}", "7".repeat(5_000));
        let deep = format!("{{\"anna\": {}", "[".repeat(5));
        for text in [
            "anna",
            "{\"anna\": \"secret",
            "{\"anna\": \"secret\\",
            "{\"anna\": \"secret\\u00",
            "{\"anna\": \"secret\\u00g1 secret\"}",
            "{\"anna\": \"secret\\u00e9 \\n \\\" secret\" anna}",
            "{\"anna\": \"sec\tret\"}",
            "{\"anna\": 4711, secret}",
            "{\"anna\": 04711}",
            "{\"anna\": 4711.}",
            "{\"anna\": true} secret",
            "{\"anna\": [nul, secret]}",
            "{\"anna\": \"sécret\", }",
            "'anna'",
            &long,
            &deep,
        ] {
            let error = Parser::new().parse(text.as_bytes(), 4).unwrap_err();
            let out = stand_in(text.as_bytes(), Some(error));
            assert_eq!(out.len(), text.len(), "{text}");
            assert_eq!(Parser::new().parse(&out, 4).unwrap_err(), error, "{text} as {}", String::from_utf8_lossy(&out));
            let out = String::from_utf8(out).unwrap();
            assert!(!["anna", "secret", "4711", "777", "é"].iter().any(|content| out.contains(content)), "{out}");
        }
        let out = stand_in(b"{\"anna\xff\": 1}", None);
        assert_eq!(out, b"xxxxxx\xffxxxxx");
    }
}

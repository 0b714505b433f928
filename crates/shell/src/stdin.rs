//! Reads off what a command writes, where that is possible: a shell behind the pipe executes it.

use std::rc::Rc;

use super::value::Field;
use super::walk::Stdin;

/// Returns the output of a command that reads this.
#[must_use]
pub fn output(words: &[Field], stdin: &Stdin) -> Stdin {
    let known: Option<Vec<&str>> = words.iter().map(Field::as_known).collect();
    let Some(known) = known else { return Stdin::Unknown };
    let text = match known.as_slice() {
        ["echo", arguments @ ..] => echo(arguments),
        ["printf", "--", arguments @ ..] | ["printf", arguments @ ..] => printf(arguments),
        ["cat"] | ["cat", "-"] => match stdin {
            Stdin::Text(text) => return Stdin::Text(Rc::clone(text)),
            _ => None,
        },
        _ => None,
    };
    text.map_or(Stdin::Unknown, |text| Stdin::Text(Rc::from(text)))
}

/// Returns what `echo` writes; none with a backslash, which shells read differently.
fn echo(arguments: &[&str]) -> Option<String> {
    let is_option = |word: &&&str| word.len() > 1 && word.starts_with('-') && word.bytes().skip(1).all(|byte| b"neE".contains(&byte));
    let words: Vec<&str> = arguments.iter().skip_while(|word| is_option(word)).copied().collect();
    let text = words.join(" ");
    (!text.contains('\\')).then_some(text)
}

/// Returns what `printf` writes, if its format knows nothing but `%s`, `\n` and `\t`.
fn printf(arguments: &[&str]) -> Option<String> {
    let (format, arguments) = arguments.split_first()?;
    let format = format.replace("\\n", "\n").replace("\\t", "\t");
    let pieces: Vec<&str> = format.split("%s").collect();
    if format.contains('\\') || format.starts_with('-') || pieces.iter().any(|piece| piece.contains('%')) {
        return None;
    }
    if pieces.len() == 1 {
        return Some(format);
    }
    let mut text = String::new();
    // The format is used again until there are no arguments left.
    let rounds = arguments.len().div_ceil(pieces.len() - 1).max(1);
    let mut arguments = arguments.iter();
    for _ in 0..rounds {
        for (at, piece) in pieces.iter().enumerate() {
            if at > 0 {
                text.push_str(arguments.next().copied().unwrap_or_default());
            }
            text.push_str(piece);
        }
        if text.len() > super::COMMAND_BYTES_MAX {
            return None;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &[&str]) -> Option<String> {
        let words: Vec<Field> = words.iter().map(|word| Field::known(*word)).collect();
        match output(&words, &Stdin::Inherited) {
            Stdin::Text(text) => Some(text.to_string()),
            _ => None,
        }
    }

    #[test]
    fn what_echo_and_printf_write_is_known() {
        assert_eq!(text(&["echo", "-n", "rm", "-rf"]).as_deref(), Some("rm -rf"));
        assert_eq!(text(&["printf", "rm -rf /\\n"]).as_deref(), Some("rm -rf /\n"));
        assert_eq!(text(&["printf", "%s %s\\n", "rm", "-rf", "ls"]).as_deref(), Some("rm -rf\nls \n"));
    }

    #[test]
    fn what_shells_disagree_about_is_not() {
        for words in [&["echo", "a\\nb"][..], &["printf", "%d", "1"], &["printf", "\\162m"], &["base64", "-d"], &["cat", "file"]] {
            assert_eq!(text(words), None, "{words:?}");
        }
    }
}

//! How much of a call's arguments is looked at.

use std::borrow::Cow;

use super::denial::Denial;

/// The largest arguments that are read, in bytes of their JSON text. No model writes as much in one answer.
const BYTES_MAX: usize = 1024 * 1024;

/// How many pieces of paths are looked at, over all paths of a call together. Each piece is compared with every pattern.
const PIECES_MAX: usize = 16_384;

/// How many braces are looked at, over all paths and patterns of a call together.
const BRACES_MAX: usize = 256;

/// Refuses arguments that are larger than what is read.
pub(super) fn check_size(text: &[u8]) -> Result<(), Denial> {
    if text.len() <= BYTES_MAX {
        return Ok(());
    }
    Err(Denial::new("oap.context_too_large", format!("Tool arguments have {} bytes; at most {BYTES_MAX} are looked at", text.len())))
}

/// Refuses more braces than are looked at, since each text with some stands for many, and ranges in braces (`{a..z}`).
pub(super) fn check_braces<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> Result<(), Denial> {
    let has_range = |text: &str| {
        let mut inner = text.split('{').skip(1).filter_map(|rest| rest.split(['{', '}']).next().filter(|inner| inner.len() < rest.len()));
        !text.contains(char::is_whitespace) && inner.any(|inner| inner.contains("..") && !inner.contains([',', '/']))
    };
    if texts.clone().any(has_range) {
        return Err(Denial::new("oap.invalid_tool_arguments", "A path or pattern has a range in braces; write the names"));
    }
    let braces: usize = texts.map(|text| text.bytes().filter(|byte| *byte == b'{').count()).sum();
    if braces <= BRACES_MAX {
        return Ok(());
    }
    Err(Denial::new(
        "oap.too_costly",
        format!("Tool arguments have {braces} braces in paths and patterns; at most {BRACES_MAX} are looked at"),
    ))
}

/// Refuses more pieces of paths than are looked at.
pub(super) fn check_pieces<'t>(texts: impl Iterator<Item = &'t Cow<'t, str>> + Clone) -> Result<(), Denial> {
    // There are no more pieces than bytes, and the texts of nearly all calls are short.
    if texts.clone().map(|text| text.len() + 1).sum::<usize>() <= PIECES_MAX {
        return Ok(());
    }
    let pieces: usize = texts.map(|text| text.bytes().filter(|byte| *byte == b'/').count() + 1).sum();
    if pieces <= PIECES_MAX {
        return Ok(());
    }
    let message = format!("Tool arguments name {pieces} pieces of paths; at most {PIECES_MAX} are looked at");
    Err(Denial::new("oap.context_too_large", message))
}

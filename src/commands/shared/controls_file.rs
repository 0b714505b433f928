//! The controls that a file gives, for commands that decide without Kafka.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use tollgate_core::decide::controls::{CONTROL_BYTES_MAX, Controls};

use tollgate_recordings::{Line, open, read_line};

/// Applies the controls of a file, and returns how many lines were refused. Each refusal is reported, and restricts whom the
/// line's key names.
pub(crate) fn apply_controls(path: &Path, controls: &Controls) -> anyhow::Result<u64> {
    let name = path.display();
    let mut lines = open(path)?;
    let (mut line, mut refused) = (Vec::new(), 0);
    for number in 1_u64.. {
        let applied = match read_line(&mut lines, &mut line, CONTROL_BYTES_MAX).with_context(|| format!("{name}: cannot be read"))? {
            Line::End => break,
            Line::Whole if line.trim_ascii().is_empty() => continue,
            // The part kept of a line that is too long is still longer than a record may be, and is refused for that.
            Line::Whole | Line::TooLong => controls.apply_line(&line),
        };
        if let Err(rejection) = applied {
            refused += 1;
            let (code, field, found, fix) = (rejection.code.as_str(), rejection.field, rejection.found, rejection.fix);
            let report = serde_json::json!({"file": path, "line": number, "code": code, "field": field, "found": found, "fix": fix});
            writeln!(io::stderr(), "{report}")?;
        }
    }
    Ok(refused)
}

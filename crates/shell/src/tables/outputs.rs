//! Files that programs write what they would print to, because an option says so: they are held to the rules of redirections.

use super::is_in;
use crate::argument::Argument;

/// TABLE: programs with such options. Behind one dash, `sort` takes a bundle of letters, `go` and `terraform` a word.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("sort gsort shuf tree iconv", &["-o", "--output"]),
    ("go", &["-o", "--o", "-coverprofile", "--coverprofile"]),
    ("terraform tofu", &["-out", "--out"]),
];

/// Returns the places of the arguments that end such an option, each with the path that it names. A word that only may be such an option
/// counts.
#[must_use]
pub fn outputs(program: &str, arguments: &[Argument]) -> Vec<(usize, String)> {
    let row = OUTPUTS.iter().find(|(names, _)| is_in(names, program));
    let Some((_, options)) = row else { return Vec::new() };
    let entering = match program {
        "go" => Some("C"),
        "terraform" | "tofu" => Some("chdir"),
        _ => None,
    };
    let bundles = entering.is_none();
    let folder = entering.and_then(|option| entered(arguments, option));
    // Behind `--` too: that may be the value of an option.
    let found = arguments.iter().enumerate().filter_map(|(index, argument)| {
        let text = argument.text.as_str();
        let value = match text.split_once('=') {
            _ if bundles && text.starts_with('-') && !text.starts_with("--") => text.split_once('o').map(|(_, value)| value),
            Some((name, value)) => options.contains(&name).then_some(value),
            None => options.contains(&text).then_some(""),
        }?;
        match value {
            "" => arguments.get(index + 1).map(|next| (index + 1, next.text.clone())),
            value => Some((index, value.to_owned())),
        }
    });
    let below = |path: String| match folder {
        Some(folder) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path,
    };
    found.map(|(index, path)| (index, below(path))).collect()
}

/// Returns the folder that a program enters by an option before it does anything.
pub(super) fn entered<'a>(arguments: &'a [Argument], option: &str) -> Option<&'a str> {
    arguments.iter().enumerate().find_map(|(index, argument)| {
        let value = argument.text.strip_prefix('-')?.trim_start_matches('-').strip_prefix(option)?;
        match value.strip_prefix('=') {
            Some(value) => Some(value),
            None if value.is_empty() => arguments.get(index + 1).map(|next| next.text.as_str()),
            None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_found_in_every_form() {
        let written = |line: &str| {
            let arguments: Vec<Argument> = line.split(' ').skip(1).map(Argument::known).collect();
            let found = outputs(line.split(' ').next().unwrap(), &arguments);
            found.into_iter().map(|(_, path)| path).collect::<Vec<_>>().join(" ")
        };
        for (line, paths) in [
            ("sort -u a -o b", "b"),
            ("sort -uob a", "b"),
            ("sort a --output=b", "b"),
            ("sort a --output b", "b"),
            ("sort -o b -o c a", "b c"),
            ("sort -u a", ""),
            ("sort -S -- -o a", "a"),
            ("go build -o bin/x ./cmd/x", "bin/x"),
            ("go build -o=bin/x .", "bin/x"),
            ("go test -coverprofile=c.out ./...", "c.out"),
            ("go build -C sub -o bin/x .", "sub/bin/x"),
            ("go build -C=sub -o /tmp/x .", "/tmp/x"),
            ("go build -v .", ""),
            ("terraform -chdir=sub plan -out=x", "sub/x"),
            ("terraform plan --out /tmp/x", "/tmp/x"),
            ("ls -o x", ""),
        ] {
            assert_eq!(written(line), paths, "{line}");
        }
    }
}

//! Grants rights as `kafka-acls.sh --add` does, with one request of Kafka's protocol: the clients that the tests use have none for it.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::protocol::{ask, text};
use crate::wait::wait_until;

/// How long the broker may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// The request that creates access control entries, and the version of it that is spoken.
const CREATE_ACLS: (i16, i16) = (30, 1);
/// The request that asks for such entries, and the version of it that is spoken.
const DESCRIBE_ACLS: (i16, i16) = (29, 1);

/// The types of resources, by the option of `kafka-acls.sh`.
const RESOURCES: [(&str, u8); 4] = [("--topic", 2), ("--group", 3), ("--cluster", 4), ("--transactional-id", 5)];
/// The operations, by name.
const OPERATIONS: [(&str, u8); 8] = [
    ("Read", 3),
    ("Write", 4),
    ("Create", 5),
    ("Alter", 7),
    ("Describe", 8),
    ("DescribeConfigs", 10),
    ("AlterConfigs", 11),
    ("IdempotentWrite", 12),
];

const LITERAL: u8 = 3;
const PREFIXED: u8 = 4;
const ALLOW: u8 = 3;

/// Carries a line of `kafka-acls.sh … --add --allow-principal …` out, at a listener whose clients are super users.
///
/// # Errors
/// The line is not understood, or the broker refuses it.
pub fn grant(bootstrap: &str, line: &str) -> Result<()> {
    let words = words(line);
    let after = |option: &str| words.iter().position(|word| word == option).and_then(|at| words.get(at + 1)).map(String::as_str);
    ensure!(words.first().is_some_and(|word| word == "kafka-acls.sh") && words.iter().any(|word| word == "--add"), "no grant: {line}");
    let principal = after("--allow-principal").context("a grant names a principal")?;
    let (option, resource) =
        RESOURCES.iter().find(|(option, _)| words.iter().any(|word| word == option)).context("a grant names a resource")?;
    let name = if *option == "--cluster" { "kafka-cluster" } else { after(option).context("a resource has a name")? };
    let pattern = match after("--resource-pattern-type") {
        None | Some("literal") => LITERAL,
        Some("prefixed") => PREFIXED,
        Some(other) => bail!("no pattern type: {other}"),
    };
    let operations = words.windows(2).filter(|pair| pair.first().is_some_and(|word| word == "--operation")).filter_map(|pair| pair.get(1));
    let codes = operations.map(|name| OPERATIONS.iter().find(|(known, _)| known == name).map(|(_, code)| *code).context("an operation"));
    let codes = codes.collect::<Result<Vec<u8>>>()?;
    ensure!(!codes.is_empty(), "a grant names operations: {line}");
    let entry = |operation| -> Result<Vec<u8>> {
        let mut entry = vec![*resource];
        text(name, &mut entry)?;
        entry.push(pattern);
        text(principal, &mut entry)?;
        text("*", &mut entry)?;
        entry.extend([operation, ALLOW]);
        Ok(entry)
    };
    let entries = codes.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
    let body = [i32::try_from(entries.len())?.to_be_bytes().to_vec(), entries.concat()].concat();
    let request = |request, body: &[u8]| ask(TcpStream::connect(bootstrap)?, ANSWER_TIME_MAX, request, false, body);
    let answer = request(CREATE_ACLS, &body)?;
    // After the throttle time there is one result for each entry: a code, and a text if it is not 0.
    let count = answer.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes).context("a short answer")?;
    let first = answer.get(8..10).context("a short answer")?;
    ensure!(count > 0 && first == [0, 0], "the broker refused the grant: {}", String::from_utf8_lossy(&answer));
    // The controller has the entries, and the broker learns of them a moment later. An entry is a filter that finds itself. In the answer the
    // throttle time, a code and a text that is empty stand before the number of resources.
    for entry in entries {
        wait_until("the broker knows of the grant", || {
            Ok(request(DESCRIBE_ACLS, &entry)?.get(8..12).is_some_and(|count| count != [0; 4]))
        })?;
    }
    Ok(())
}

/// Returns the words of a command line. Words in single quotes may hold blanks.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

//! Runs one case, and says how long it took. Of a case that failed it says what repeats the case and where the logs are.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use libtest_mimic::{Completion, Failed};

use super::environment::Environment;
use super::{Case, NotHere};

thread_local! {
    /// The last panic of this thread: its place and its message.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has the place and the message of each panic noted, since what `catch_unwind` returns does not hold the place.
pub(super) fn note_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANIC.set(panic.to_string());
        print(panic);
    }));
}

/// Runs a case in a directory of its own, which is removed unless the case fails.
pub(super) fn of(case: &Case, environment: &Environment) -> Result<Completion, Failed> {
    let directory = directory_for(case, environment).map_err(|error| format!("{error:#}"))?;
    let began = Cell::new(Instant::now());
    let ran = catch_unwind(AssertUnwindSafe(|| environment.run(&case.body, directory.path(), || began.set(Instant::now()))));
    eprintln!("{:8.1} s  {}", began.get().elapsed().as_secs_f64(), case.name);
    let problem = match ran {
        Ok(Ok(())) => return Ok(Completion::Completed),
        Ok(Err(error)) if error.is::<NotHere>() => return Ok(Completion::ignored_with(error)),
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => PANIC.take(),
    };
    let broker = environment.shared_log();
    Err(with_directions(&problem, &case.name, &directory.keep(), broker.as_deref()).into())
}

fn directory_for(case: &Case, environment: &Environment) -> anyhow::Result<tempfile::TempDir> {
    std::fs::create_dir_all(environment.logs())?;
    Ok(tempfile::Builder::new().prefix(&format!("{}-", case.name.replace("::", "."))).tempdir_in(environment.logs())?)
}

/// Returns what went wrong, with the command that repeats the case and the places of its logs.
fn with_directions(problem: &str, case: &str, directory: &Path, broker: Option<&Path>) -> String {
    let mut text = format!("{problem}\n\nrepeat: {}cargo test --test kafka -- --exact {case}\n", variables());
    // Writing to a string does not fail.
    let _written = write!(text, "logs:   {}", directory.display());
    if let Some(broker) = broker {
        let _written = write!(text, "\n        {}", broker.display());
    }
    text
}

/// Returns the variables of this run that a case may depend on, such as a seed, as a shell takes them in front of a command.
fn variables() -> String {
    let ours = std::env::vars().filter(|(name, _)| name.starts_with("TOLLGATE_"));
    ours.fold(String::new(), |text, (name, value)| format!("{text}{name}='{}' ", value.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_repeats_it_and_where_its_logs_are() {
        let text = with_directions("left: 1, right: 2", "state::zombie", Path::new("/t/state.zombie-x"), Some(Path::new("/t/broker.log")));
        let (problem, directions) = text.split_once("\n\n").expect("two parts");
        assert_eq!(problem, "left: 1, right: 2");
        assert!(directions.starts_with("repeat: ") && directions.contains("cargo test --test kafka -- --exact state::zombie\n"), "{text}");
        assert!(directions.ends_with("logs:   /t/state.zombie-x\n        /t/broker.log"), "{text}");
    }
}

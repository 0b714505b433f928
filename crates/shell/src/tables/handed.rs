//! Folders that are handed over whole: copied to another machine, mounted, packed or sent. What takes such a folder has all that lies below it.

use super::elsewhere::{FLAGS_OF_CONTAINERS, others};
use super::is_in;
use super::touches::words;
use super::words::{is_sender, read_by_senders};
use crate::argument::{Argument, text_at, text_in_front};
use crate::files::Below;

/// TABLE: programs that copy folders, perhaps from or to another machine or a container, each with its letters that take a value.
const COPIERS: [(&str, &str); 3] =
    [("rsync", "@BMTef"), ("scp", "DFJPSXcilo"), ("docker docker-compose kubectl nerdctl podman podman-compose", "cn")];

/// TABLE: long options of these that take no value.
const FLAGS: [&str; 9] =
    ["--archive", "--compress", "--delete", "--dry-run", "--follow-link", "--progress", "--recursive", "--stats", "--verbose"];

/// TABLE: programs that pack folders, mount them or send them away.
const TAKERS: &str = "7z 7za 7zr adb aws azcopy bindfs borg cpio dar ditto gcloud genisoimage gsutil jar mc mkisofs mksquashfs mount pax rar \
     rclone restic s3cmd systemd-nspawn xorriso";

/// TABLE: programs that mount folders into containers.
const MOUNTERS: [&str; 5] = ["docker", "docker-compose", "nerdctl", "podman", "podman-compose"];

/// TABLE: options of `docker build` and `docker compose up` that take no value.
const FLAGS_OF_BUILDS: [&str; 7] = ["--build", "--force-recreate", "--load", "--no-cache", "--pull", "--push", "--remove-orphans"];

/// What a program copies.
pub(super) struct Copied {
    /// The places of its words.
    pub words: Vec<usize>,
    /// The places of the words that may be where it copies to.
    pub targets: Vec<usize>,
    /// Whether it may copy what no word of the line names, from another machine or a container, or out of a folder.
    pub fetches: bool,
}

/// Returns what a program copies; `None` if it is no program that copies. A word behind an option that may take a value may be that value, or any
/// of the names.
pub(super) fn copied(program: &str, arguments: &[Argument]) -> Option<Copied> {
    let (_, valued) = COPIERS.iter().find(|(names, _)| is_in(names, program))?;
    let text = |index: usize| text_at(arguments, index);
    let subcommand = match program {
        "rsync" | "scp" => None,
        // It takes options of its own in front.
        "kubectl" => Some((0..arguments.len()).take_while(|at| !matches!(text(*at), "--" | "exec")).find(|at| text(*at) == "cp")?),
        _ => Some((0..2).find(|at| text(*at) == "cp" && (*at == 0 || matches!(text(0), "compose" | "container")))?),
    };
    let words: Vec<usize> = words(arguments).into_iter().filter(|index| subcommand.is_none_or(|at| *index > at)).collect();
    let may_be_value = |index: &usize| {
        let before = text_in_front(arguments, *index);
        let is_long = before.starts_with("--") && before != "--" && !before.contains('=') && !FLAGS.contains(&before);
        is_long || !before.starts_with("--") && before.starts_with('-') && before.contains(|letter| valued.contains(letter))
    };
    let last = words.iter().rfind(|index| !may_be_value(index)).copied();
    let targets: Vec<usize> = words.iter().copied().filter(|index| Some(*index) == last || may_be_value(index)).collect();
    let is_remote = |index: &usize| text(*index).split('/').next().is_some_and(|host| host.contains(':'));
    // A slash at the end of a source has `rsync` copy what lies in it.
    let is_opened = |index: &usize| {
        program == "rsync" && (text(*index).ends_with(['/', '*']) || matches!(text(*index).rsplit('/').next(), Some("." | "..")))
    };
    let fetches = words.iter().any(|index| Some(*index) != last && (is_remote(index) || is_opened(index)));
    Some(Copied { words, targets, fetches })
}

/// Returns whether a program packs folders, mounts them or sends them away.
pub(super) fn is_taker(program: &str) -> bool {
    is_in(TAKERS, program)
}

/// Returns for each argument of a program that sends files what happens below the file that it names, where the program's table does not know the
/// arguments. What such a program is known to read goes away with all that lies below it, and so do its words. The value of an option may be a
/// folder that a container gets.
pub(super) fn sent(program: &str, arguments: &[Argument]) -> Option<Vec<Below>> {
    if !is_sender(program) {
        return None;
    }
    let read = read_by_senders(program, arguments);
    let others = others(program, arguments);
    let below = |index: usize| match arguments.get(index) {
        _ if read.contains(&index) => Below::Moves,
        Some(_) if is_mount(program, arguments, index) && !others.contains(&index) => {
            if is_only_read(arguments, index) {
                Below::Moves
            } else {
                Below::Given
            }
        }
        _ => Below::Sent,
    };
    Some((0..arguments.len()).map(below).collect())
}

/// Returns whether an argument may be a folder that a container gets: the value of an option, attached or not.
fn is_mount(program: &str, arguments: &[Argument], index: usize) -> bool {
    let is_valued = |option: &str| option.starts_with('-') && option != "--" && !option.contains('=') && !is_flag(option);
    let is_attached = |option: &str| match option.strip_prefix("--") {
        Some(long) => long.contains('='),
        None => option.starts_with('-') && option.len() > 2 && !is_flag(option),
    };
    MOUNTERS.contains(&program) && (is_attached(text_at(arguments, index)) || is_valued(text_in_front(arguments, index)))
}

/// Returns whether an option of `docker` takes no value, which may stand in front of a word that is none.
fn is_flag(option: &str) -> bool {
    FLAGS_OF_BUILDS.contains(&option) || is_in(FLAGS_OF_CONTAINERS, option)
}

/// Returns whether a mount says that it is only read: `FROM:TO:ro`, `type=bind,src=FROM,readonly`. `U` and `chown` change the owner of its files, and
/// quotes may hide a comma.
fn is_only_read(arguments: &[Argument], index: usize) -> bool {
    let mount = text_at(arguments, index);
    let is_bind = mount.starts_with("--mount=") || !mount.starts_with('-') && text_in_front(arguments, index) == "--mount";
    let settings = if is_bind { mount } else { mount.splitn(3, ':').nth(2).unwrap_or_default() };
    let mut words = settings.split(',');
    let says_more =
        |word: &str| matches!(word, "rw" | "U" | "chown") || ["ro=", "readonly=", "U=", "chown="].iter().any(|name| word.starts_with(name));
    !mount.contains('"') && words.clone().any(|word| matches!(word, "ro" | "readonly")) && !words.any(says_more)
}

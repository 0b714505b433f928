//! The jail: namespaces of users and mounts of its own, with a small tree of files as the root.

use std::os::unix::fs as unix;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use std::fs;

use crate::Fault;

/// The option by which the program tells itself that it is in the jail, and where that will be.
const ENTERED: &str = "--jail";

/// Files of the tree. Their directories are made too.
#[rustfmt::skip]
const FILES: [&str; 36] = [
    "/work/a", "/work/.env", "/work/b/c", "/work/b/d/e", "/work/src/main.rs", "/work/src/bin/x", "/work/secret/x",
    "/work/proc/self/root/x", "/work/tmp/x", "/work/etc/passwd", "/work/a b", "/work/...", "/work/~/x", "/work/\u{e4}", "/workx/a",
    "/Work/a", "/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/ssl/private/k", "/home/u/notes", "/home/u/work/x", "/home/u/.config/y",
    "/home/u/.ssh/id_rsa", "/home/bob/x", "/root/x", "/root/.config/y", "/root/.aws/credentials", "/tmp/x", "/run/x", "/run/secrets/t",
    "/run/lock/x", "/var/lib/x", "/var/x", "/usr/bin/ls", "/usr/lib/x",
];

/// Links that every system has.
#[rustfmt::skip]
const LINKS: [(&str, &str); 9] = [
    ("/bin", "usr/bin"), ("/lib", "usr/lib"), ("/var/run", "/run"), ("/var/lock", "/run/lock"), ("/etc/mtab", "/proc/self/mounts"),
    ("/dev/fd", "/proc/self/fd"), ("/dev/stdin", "/proc/self/fd/0"), ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Returns the folder of the jail, if the program runs in its namespaces already.
pub fn entered(arguments: &mut Vec<String>) -> Option<PathBuf> {
    let at = arguments.iter().position(|argument| argument == ENTERED)?;
    let folder = arguments.get(at + 1).map(PathBuf::from);
    arguments.drain(at..(at + 2).min(arguments.len()));
    folder
}

/// Runs this program with these arguments in namespaces of its own, and returns how it ended.
///
/// # Errors
/// If there is no `unshare`, or the machine does not allow namespaces.
pub fn run_in_one(arguments: &[String]) -> Result<ExitCode, Fault> {
    let folder = std::env::temp_dir().join(format!("tollgate-paths-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--"]).arg(std::env::current_exe()?);
    let status = command.arg(ENTERED).arg(&folder).args(arguments).status();
    fs::remove_dir(&folder)?;
    let status = status.map_err(|error| format!("unshare cannot be started ({error}); please install util-linux"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Makes the tree in a folder, and makes it the root of this process.
///
/// # Errors
/// If something of it cannot be made: `mount` is missing, or the machine does not allow namespaces.
pub fn furnish(folder: &Path) -> Result<(), Fault> {
    let hint = "; user and mount namespaces have to be allowed (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)";
    mount(&["-t", "tmpfs", "tollgate"], folder).map_err(|error| format!("{error}{hint}"))?;
    let inside = |path: &str| folder.join(path.trim_start_matches('/'));
    for directory in ["/proc", "/dev"] {
        fs::create_dir_all(inside(directory))?;
    }
    for file in FILES {
        let file = inside(file);
        fs::create_dir_all(file.parent().ok_or("a file has a directory")?)?;
        fs::write(file, "canary")?;
    }
    for (link, target) in LINKS {
        unix::symlink(target, inside(link))?;
    }
    mount(&["--rbind", "/proc"], &inside("/proc"))?;
    unix::chroot(folder)?;
    std::env::set_current_dir("/")?;
    Ok(())
}

fn mount(arguments: &[&str], at: &Path) -> Result<(), Fault> {
    let status = Command::new("mount").args(arguments).arg(at).status();
    match status.map_err(|error| format!("mount cannot be started ({error}); please install mount and util-linux"))? {
        status if status.success() => Ok(()),
        status => Err(format!("mount {} ends with {status}", arguments.join(" ")).into()),
    }
}

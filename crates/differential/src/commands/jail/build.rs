//! Building the jail around the worker.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{chdir, pivot_root, setsid};

use super::places::Places;
use crate::commands::files::{CANARIES, FILES, OUT, TRACKED, TRAPS, WORK};
use crate::commands::plan::{Copied, Plan};
use crate::commands::rules::{RULE_SETS, RuleSet};

/// The most processes that a line and the worker have together.
const PROCESSES_MAX: u64 = 64;

/// The most memory of one process, in bytes.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// The longest file that a line can write, in bytes.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The most files that a process has open.
const FILES_MAX: u64 = 256;

/// What the standard input of every line is.
const INPUT: &str = "canary\n-exec canary ;\n$(canary)\n--output=pwned\n";

/// The devices of the jail.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The jail, from inside.
#[derive(Debug)]
pub(in crate::commands) struct Jail {
    /// The folder that lines cannot know: shells, what canaries write, and the programs of each rule set.
    pub(super) hidden: PathBuf,
    /// What has to stay as it is.
    pub(super) places: Places,
}

impl Jail {
    /// Builds the jail. The process has to be the first one of namespaces of its own (user, mount, process ids, network), and it is in the
    /// jail afterwards.
    ///
    /// # Errors
    /// If the kernel refuses a mount or a file cannot be copied.
    pub(in crate::commands) fn build(plan: &Plan) -> Result<Self> {
        // What a line signals to its process group must not leave the jail.
        setsid().context("setsid")?;
        start_network();
        let root = &plan.root;
        mount(Some("tmpfs"), root, Some("tmpfs"), MsFlags::MS_NOSUID, Some("size=512m,mode=755")).context("a file system for the jail")?;
        make_folders(root)?;
        let hidden = root.join(&plan.token);
        fs::create_dir(&hidden)?;
        for shell in &plan.shells {
            copy(shell, &hidden)?;
        }
        for library in &plan.libraries {
            copy(library, root)?;
        }
        let canary = hidden.join("canary");
        let own = Path::new("/").join(&plan.token);
        make_executable(&canary, &canary_script(&own))?;
        fs::write(hidden.join("log"), "")?;
        fs::set_permissions(hidden.join("log"), fs::Permissions::from_mode(0o666))?;
        fs::write(hidden.join("input"), INPUT)?;
        for set in RULE_SETS {
            make_programs(plan, &set, &hidden, &canary)?;
        }
        for path in plan.other_canaries.iter().map(PathBuf::as_path).chain(CANARIES.map(Path::new)) {
            let path = below(root, path);
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::hard_link(&canary, &path).with_context(|| path.display().to_string())?;
        }
        make_files(plan, root)?;
        make_devices(root)?;
        enter(root)?;
        limit()?;
        refresh_repository(&own);
        let places = Places::watch().context("the files of the jail")?;
        Ok(Self { hidden: own, places })
    }

    /// Puts the programs of a rule set in their place.
    ///
    /// # Errors
    /// If the kernel refuses the mount.
    pub(in crate::commands) fn use_programs(&self, set: &RuleSet) -> Result<()> {
        // Nothing is mounted the first time.
        let _ = umount2("/usr/bin", MntFlags::MNT_DETACH);
        let programs = self.hidden.join("sets").join(set.name);
        mount(Some(&programs), "/usr/bin", None::<&str>, MsFlags::MS_BIND, None::<&str>).context("the programs of a rule set")?;
        // A line must not take a canary away from the lines behind it.
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
        mount(None::<&str>, "/usr/bin", None::<&str>, flags, None::<&str>).context("the programs of a rule set, read-only")
    }
}

/// Brings the network of the namespace up, such that every address is this machine and an attempt to connect is counted. Without it an
/// attempt fails, and is not seen; the self test says so.
fn start_network() {
    for arguments in [&["link", "set", "lo", "up"][..], &["route", "add", "local", "0.0.0.0/0", "dev", "lo"]] {
        let _ = Command::new("busybox").arg("ip").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Returns where a path of the jail is while its root is not the root yet.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn make_folders(root: &Path) -> Result<()> {
    for folder in ["usr/bin", "usr/lib", "usr/lib64", "usr/local/bin", "etc", "home/agent", "tmp", "var/tmp", "dev/shm", "proc", "old"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::create_dir_all(below(root, Path::new(WORK)).join(OUT))?;
    for (name, target) in [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("usr/sbin", "bin")] {
        symlink(target, root.join(name))?;
    }
    Ok(())
}

fn copy(copied: &Copied, root: &Path) -> Result<()> {
    let to = below(root, &copied.to);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(&copied.from, &to).with_context(|| copied.from.display().to_string())?;
    Ok(())
}

fn make_executable(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Returns the program behind all names that are not listed: it writes down its path, as the kernel tells it, and its arguments. A NUL ends
/// them, since an argument may hold any other byte.
fn canary_script(hidden: &Path) -> String {
    let hidden = hidden.display();
    format!("#!{hidden}/dash\n{{ printf '%s ' \"$0\" \"$@\"; printf '\\0'; }} >>{hidden}/log\n")
}

/// Makes the folder of programs of a rule set: those that are listed, and canaries under all other names.
fn make_programs(plan: &Plan, set: &RuleSet, hidden: &Path, canary: &Path) -> Result<()> {
    let folder = hidden.join("sets").join(set.name);
    fs::create_dir_all(&folder)?;
    let listed: HashSet<&str> = set.programs().collect();
    for program in plan.programs.iter().filter(|program| program.to.to_str().is_some_and(|name| listed.contains(name))) {
        copy(program, &folder)?;
    }
    for name in plan.canaries.iter().filter(|name| !listed.contains(name.as_str())) {
        fs::hard_link(canary, folder.join(name)).with_context(|| name.clone())?;
    }
    Ok(())
}

fn make_files(plan: &Plan, root: &Path) -> Result<()> {
    let write = |path: &Path, bytes: &[u8]| -> Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, bytes).with_context(|| path.display().to_string())
    };
    for (path, text) in FILES {
        write(&below(root, Path::new(path)), text.as_bytes())?;
    }
    for (folder, names) in TRAPS {
        for name in names {
            let path = below(root, Path::new(folder)).join(OsStr::from_bytes(name.as_bytes()));
            if !path.exists() {
                write(&path, b"")?;
            }
        }
    }
    let work = below(root, Path::new(WORK));
    for (name, text) in TRACKED {
        write(&work.join("tracked").join(name), text.as_bytes())?;
    }
    for file in &plan.repository {
        let path = work.join(".git").join(&file.path);
        match &file.bytes {
            Some(bytes) => write(&path, bytes)?,
            None => fs::create_dir_all(&path)?,
        }
    }
    Ok(())
}

fn make_devices(root: &Path) -> Result<()> {
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), root.join("dev").join(name));
        fs::write(&to, "")?;
        mount(Some(&from), &to, None::<&str>, MsFlags::MS_BIND, None::<&str>).with_context(|| from.display().to_string())?;
    }
    for (name, target) in
        [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")]
    {
        symlink(target, root.join("dev").join(name))?;
    }
    // Read-only: what can be set there is set for the whole machine.
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), &root.join("proc"), Some("proc"), flags, None::<&str>).context("/proc for the jail")
}

fn enter(root: &Path) -> Result<()> {
    pivot_root(root, &root.join("old")).context("the root of the jail")?;
    chdir(WORK).context(WORK)?;
    umount2("/old", MntFlags::MNT_DETACH).context("the root outside")?;
    fs::remove_dir("/old")?;
    Ok(())
}

fn limit() -> Result<()> {
    let limits = [
        (Resource::RLIMIT_NPROC, PROCESSES_MAX),
        (Resource::RLIMIT_AS, MEMORY_BYTES_MAX),
        (Resource::RLIMIT_FSIZE, FILE_BYTES_MAX),
        (Resource::RLIMIT_NOFILE, FILES_MAX),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (resource, limit) in limits {
        setrlimit(resource, limit, limit).with_context(|| format!("{resource:?}"))?;
    }
    Ok(())
}

/// Lets git see the files once, which writes what it remembers of them: it would change its folder at the first line otherwise.
fn refresh_repository(hidden: &Path) {
    let git = hidden.join("sets/rich/git");
    let _ = Command::new(git).arg("status").env_clear().env("HOME", "/home/agent").current_dir(WORK).stdout(Stdio::null()).status();
}

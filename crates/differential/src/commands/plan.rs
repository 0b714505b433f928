//! The plan of a jail: what the machine has to give it. The first process makes it, and each worker builds its jail by it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::files::TRACKED;
use super::generate::{COMMON_PROGRAMS, words};
use super::options::Options;
use super::rules::RULE_SETS;

/// The shells, each with the Debian package that it comes from.
pub(super) const SHELLS: [(&str, &str); 4] = [("bash", "bash"), ("dash", "dash"), ("zsh", "zsh"), ("busybox", "busybox")];

/// Other programs that the jail is built with, each with its Debian package.
const TOOLS: [(&str, &str); 3] = [("unshare", "util-linux"), ("git", "git"), ("ldd", "libc-bin")];

/// Where programs are looked for.
const PROGRAM_FOLDERS: [&str; 6] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where git keeps the programs that it runs itself.
const GIT_FOLDER: &str = "/usr/lib/git-core";

/// The longest name of a canary, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// A file that is copied into the jail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Copied {
    /// Where it is on the machine.
    pub(super) from: PathBuf,
    /// Where it is in the jail.
    pub(super) to: PathBuf,
}

/// A file of the git repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GitFile {
    /// Its path below `.git`.
    pub(super) path: PathBuf,
    /// Its contents; none for a folder.
    pub(super) bytes: Option<Vec<u8>>,
}

/// What a worker needs to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The name of the folder that lines cannot know.
    pub(super) token: String,
    /// Where the jail's root is mounted.
    pub(super) root: PathBuf,
    /// The shells by their names.
    pub(super) shells: Vec<Copied>,
    /// The programs that are listed somewhere; `to` is the name.
    pub(super) programs: Vec<Copied>,
    /// Libraries and modules.
    pub(super) libraries: Vec<Copied>,
    /// The names of canaries in folders of programs.
    pub(super) canaries: Vec<String>,
    /// The paths of canaries elsewhere.
    pub(super) other_canaries: Vec<PathBuf>,
    /// The repository in the work folder.
    pub(super) repository: Vec<GitFile>,
    /// Lines to start from.
    pub(super) corpus: Vec<String>,
    /// Where random numbers start.
    pub(super) seed: u64,
    /// When to end, in seconds.
    pub(super) seconds: u64,
    /// How many lines have to be run before that.
    pub(super) lines_min: u64,
    /// The names of the rule sets; all if it is empty.
    pub(super) rules: Vec<String>,
    /// Whether only the corpus is run.
    pub(super) replay: bool,
    /// Whether the rules are not asked.
    pub(super) bypass: bool,
    /// How many allowed lines are told at the end.
    pub(super) samples: usize,
    /// Whether the jail itself is tested.
    pub(super) self_test: bool,
}

impl Plan {
    /// Makes a plan for jails whose roots and repository are below a folder.
    ///
    /// # Errors
    /// If a program is missing that the jail needs, with the name of the package that has it.
    pub(super) fn new(options: &Options, folder: &Path) -> Result<Self> {
        check_programs()?;
        let root = folder.join("root");
        fs::create_dir_all(&root)?;
        let shells = SHELLS.iter().map(|(name, _)| Ok(Copied { from: program(name)?, to: name.into() })).collect::<Result<Vec<_>>>()?;
        let programs = listed_programs();
        let modules = zsh_modules()?;
        let used = shells.iter().chain(&programs).map(|copied| &copied.from).chain(&modules);
        let mut libraries: BTreeSet<Copied> = libraries(used)?;
        libraries.extend(modules.iter().map(|path| Copied { from: path.clone(), to: inside(path) }));
        let (git_programs, other_canaries) = git_programs()?;
        libraries.extend(git_programs);
        let canaries: BTreeSet<String> = machine_programs()
            .into_iter()
            .chain(busybox_applets()?)
            .chain(words().into_iter().map(str::to_owned))
            .chain(COMMON_PROGRAMS.iter().map(|&name| name.to_owned()))
            .filter(|name| !name.is_empty() && name != "." && name != ".." && name.len() < NAME_BYTES_MAX && !name.contains(['/', '\0']))
            .collect();
        Ok(Self {
            token: format!(".{:016x}", fastrand::u64(..)),
            root,
            shells,
            programs,
            libraries: libraries.into_iter().collect(),
            canaries: canaries.into_iter().collect(),
            other_canaries,
            repository: repository(&folder.join("repository"))?,
            corpus: Vec::new(),
            seed: options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000_000)),
            seconds: options.seconds,
            lines_min: options.lines_min,
            rules: options.rules.clone(),
            replay: options.replay,
            bypass: options.bypass,
            samples: options.samples,
            self_test: options.self_test,
        })
    }
}

fn check_programs() -> Result<()> {
    let missing: BTreeSet<&str> =
        SHELLS.iter().chain(&TOOLS).filter(|(name, _)| find(name).is_none()).map(|&(_, package)| package).collect();
    if !missing.is_empty() {
        let names = missing.into_iter().collect::<Vec<_>>().join(" ");
        bail!("programs are missing; please install these Debian packages: {names} (as root: apt-get install {names})");
    }
    Ok(())
}

fn find(name: &str) -> Option<PathBuf> {
    let path = PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())?;
    fs::canonicalize(path).ok()
}

fn program(name: &str) -> Result<PathBuf> {
    find(name).with_context(|| format!("{name} is missing"))
}

/// Returns the programs of all rule sets that this machine has. A script is none: it would need its interpreter.
fn listed_programs() -> Vec<Copied> {
    let names: BTreeSet<&str> = RULE_SETS.iter().flat_map(|set| set.programs()).collect();
    let path = |name: &str| find(name).filter(|path| fs::read(path).is_ok_and(|bytes| !bytes.starts_with(b"#!")));
    names.into_iter().filter_map(|name| Some(Copied { from: path(name)?, to: name.into() })).collect()
}

fn output(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output().with_context(|| program.display().to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns where a file of the machine is in the jail: `/lib` and its like are links there.
fn inside(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

fn libraries<'p>(used: impl Iterator<Item = &'p PathBuf>) -> Result<BTreeSet<Copied>> {
    let ldd = program("ldd")?;
    let mut command = Command::new(ldd);
    let output = command.args(used).output().context("ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/') && !word.ends_with(':')));
    Ok(paths.map(|path| Copied { from: path.into(), to: inside(Path::new(path)) }).filter(|copied| copied.from.is_file()).collect())
}

fn zsh_modules() -> Result<Vec<PathBuf>> {
    let folder = output(&program("zsh")?, &["-fc", "print -r -- $module_path"])?;
    let mut modules = Vec::new();
    let mut folders: Vec<PathBuf> = folder.split_whitespace().map(PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "so") {
                modules.push(path);
            }
        }
    }
    Ok(modules)
}

/// Returns what of git's own programs is git itself, and the paths of the others.
fn git_programs() -> Result<(Vec<Copied>, Vec<PathBuf>)> {
    let git = fs::metadata(program("git")?)?;
    let (mut same, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(GIT_FOLDER).into_iter().flatten().flatten() {
        let path = entry.path();
        match fs::metadata(&path) {
            // One name is enough: git runs its own parts as `git PART`.
            Ok(data) if data.size() == git.size() && path.ends_with("git") => same.push(Copied { from: path.clone(), to: path }),
            Ok(data) if data.size() == git.size() => {}
            Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => others.push(path),
            _ => {}
        }
    }
    Ok((same, others))
}

fn machine_programs() -> Vec<String> {
    let entries = PROGRAM_FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn busybox_applets() -> Result<Vec<String>> {
    Ok(output(&program("busybox")?, &["--list"])?.lines().map(str::to_owned).collect())
}

/// Makes the repository of the work folder and returns the files of its `.git`.
fn repository(folder: &Path) -> Result<Vec<GitFile>> {
    fs::create_dir_all(folder.join("tracked"))?;
    for (name, text) in TRACKED {
        fs::write(folder.join("tracked").join(name), text)?;
    }
    let git = program("git")?;
    let run = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new(&git);
        command.current_dir(folder).env_clear().env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.args(arguments).output().context("git")?;
        if !output.status.success() {
            bail!("git {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    };
    run(&["init", "-q", "--template=", "-b", "main"])?;
    for (key, value) in [("user.name", "Agent"), ("user.email", "agent@example.com"), ("core.logAllRefUpdates", "false")] {
        run(&["config", key, value])?;
    }
    run(&["remote", "add", "origin", "https://example.invalid/repository.git"])?;
    run(&["add", "tracked"])?;
    run(&["commit", "-q", "-m", "first"])?;
    run(&["tag", "v1"])?;
    run(&["branch", "other"])?;
    let mut files = Vec::new();
    let top = folder.join(".git");
    fs::create_dir_all(top.join("hooks"))?;
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let below = path.strip_prefix(&top)?.to_owned();
            if path.is_dir() {
                files.push(GitFile { path: below, bytes: None });
                folders.push(path);
            } else {
                files.push(GitFile { path: below, bytes: Some(fs::read(&path)?) });
            }
        }
    }
    Ok(files)
}

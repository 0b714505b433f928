//! Arguments that are no files of this machine: texts of `gh`, and what `docker` and `kubectl` give a container.

use super::is_in;
use crate::argument::{Argument, text_at, text_in_front};

/// TABLE: subcommands of `gh`, with the options whose value is a text, and those without a value, in front of which or behind which they may stand.
const TEXTS_OF_GH: [(&str, &str, &str, &str); 7] = [
    (
        "pr issue",
        "create",
        "--body -b --title -t",
        "--draft -d --fill -f --fill-first --fill-verbose --web -w --no-maintainer-edit --dry-run",
    ),
    ("pr issue", "edit", "--body -b --title -t", ""),
    ("pr issue", "comment", "--body -b", "--edit-last --create-if-none --web -w"),
    ("pr", "review", "--body -b", "--approve -a --comment -c --request-changes -r"),
    ("pr", "merge", "--body -b --subject -t", "--admin --auto --disable-auto --delete-branch -d --merge -m --rebase -r --squash -s"),
    ("pr issue", "close reopen", "--comment -c", "--delete-branch -d"),
    (
        "release",
        "create edit",
        "--notes -n --title -t",
        "--draft -d --prerelease -p --generate-notes --latest --notes-from-tag --verify-tag",
    ),
];

/// TABLE: options of `kubectl` in front of its subcommand that take a value.
const VALUES_OF_KUBECTL: &str = "-n --namespace --context --cluster --user --kubeconfig -s --server";

/// TABLE: options of `docker` and its like that take no value, and those whose value is no file of this machine.
pub(super) const FLAGS_OF_CONTAINERS: &str =
    "-i -t -d -it -ti --rm --interactive --tty --detach --init --privileged --read-only --no-deps -T --no-TTY --quiet -q";
const VALUES_OF_CONTAINERS: &str = "-w --workdir -u --user --name --network --hostname -h -p --publish -e --env --memory -m --cpus --gpus --platform --restart --pull --label -l";

/// TABLE: those of these that `docker exec` takes.
const VALUES_OF_EXEC: &str = "-w --workdir -u --user -e --env";

/// TABLE: options of `docker build` whose value is no file of this machine, and those without a value.
const VALUES_OF_BUILDS: &str = "-t --tag --target --platform --label --build-arg --progress";
const FLAGS_WITH_BUILDS: &str = "--no-cache --pull --push --load --quiet -q --rm --force-rm";

/// Returns the places of arguments that are no files of this machine: texts, and what stands in a container. Behind an argument that may be none
/// or several, nobody knows the places.
#[must_use]
pub fn others(program: &str, arguments: &[Argument]) -> Vec<usize> {
    let known = arguments.iter().position(|argument| argument.many).unwrap_or(arguments.len());
    let found = match program {
        "gh" => texts_of_gh(arguments),
        "kubectl" => in_pod(arguments),
        "docker" | "podman" | "nerdctl" | "docker-compose" | "podman-compose" => in_container(arguments),
        _ => return Vec::new(),
    };
    found.into_iter().filter(|at| *at <= known).collect()
}

/// Returns the places of the values of some options, which are read one after the other: an option in the place of a value is none. Behind an option
/// of which nobody knows whether it takes a value, the next argument may be that.
fn values(arguments: &[Argument], from: usize, valued: &str, flags: &str) -> Vec<usize> {
    let text = |at: usize| text_at(arguments, at);
    let (mut found, mut at) = (Vec::new(), from);
    while at < arguments.len() && text(at) != "--" {
        let (option, attached) = text(at).split_once('=').map_or((text(at), false), |(option, _)| (option, true));
        let is_valued = is_in(valued, option);
        let takes_next = !attached && option.starts_with('-') && !is_in(flags, option);
        found.extend((is_valued && attached).then_some(at));
        found.extend((is_valued && !attached).then_some(at + 1));
        // Where that is an option itself, it may count for either.
        let next = text(at + 1);
        at += if takes_next && (is_valued || next.starts_with('-')) { 2 } else { 1 };
    }
    found
}

/// TABLE: options whose value is a host, however it is written.
const HOSTS: [(&str, &str); 4] = [
    ("kubectl oc", "-s --server --proxy-url"),
    ("helm", "--kube-apiserver"),
    ("gh", "--hostname"),
    ("docker podman nerdctl docker-compose podman-compose", "-H --host --url"),
];

/// TABLE: options of builders for `npm` whose value is a folder of this machine.
const FOLDERS_OF_NPM: [&str; 5] = ["-w", "--workspace", "--prefix", "-C", "--dir"];

/// Returns the address of another machine that an argument holds: what [`address`] finds in it, or a host by its place.
#[must_use]
pub fn address_at(program: &str, arguments: &[Argument], index: usize) -> Option<String> {
    let host = || host_at(program, arguments, index).map(|host| format!("https://{host}/"));
    address(program, text_at(arguments, index)).or_else(host)
}

/// Returns the host that an argument names without a scheme: the value of an option that takes hosts, what `kubectl` and `gh` take a folder or a
/// repository from, a module that is added, and the repository behind `OWNER/NAME`.
fn host_at<'a>(program: &str, arguments: &'a [Argument], index: usize) -> Option<&'a str> {
    let (text, in_front) = (text_at(arguments, index), text_in_front(arguments, index));
    let attached = attached_to_letter(text).or_else(|| text.split_once('=').filter(|_| text.starts_with('-')));
    let (option, value) = attached.unwrap_or((in_front, text));
    let host = value.rsplit("://").next()?.split(['/', ':', '?']).next().filter(|host| !host.is_empty())?;
    let slashes = value.matches('/').count();
    let before = || arguments.iter().take(index).map(|argument| argument.text.as_str());
    match program {
        _ if HOSTS.iter().any(|(programs, options)| is_in(programs, program) && is_in(options, option)) => Some(host),
        "kubectl" | "oc" => (matches!(option, "-k" | "--kustomize") && slashes > 0 && is_host(host)).then_some(host),
        "gh" => (slashes == 2 && is_host(host)).then_some(host),
        "go" => (text_at(arguments, 0) == "get" && slashes > 0 && is_host(host)).then_some(host),
        "bun" | "bunx" | "npm" | "npx" | "pnpm" | "pnpx" | "yarn" => {
            let is_added = before().any(|word| matches!(word, "add" | "i" | "install"));
            let is_package = is_added || matches!(in_front, "dlx" | "exec" | "x") || before().all(|word| word.starts_with('-'));
            (is_package && is_short(text) && !FOLDERS_OF_NPM.contains(&in_front)).then_some("github.com")
        }
        _ => None,
    }
}

/// Returns whether a text is `OWNER/NAME`, which stands for a repository to `npm`. A scope, a folder and a version begin with other signs.
fn is_short(text: &str) -> bool {
    let is_name = |name: &str| name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    text.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name) && !name.contains('/') && !owner.contains(['@', ':']))
}

/// Returns one of the options of one letter above, behind letters without a value, and what is attached to it.
fn attached_to_letter(text: &str) -> Option<(&'static str, &str)> {
    let letters = text.strip_prefix('-')?.trim_start_matches(['i', 't', 'q', 'd', 'A', 'w', 'R']);
    let (option, value) =
        ["-s", "-k", "-H"].into_iter().find_map(|option| Some((option, letters.strip_prefix(option.strip_prefix('-')?)?)))?;
    let value = value.strip_prefix('=').unwrap_or(value);
    (!value.is_empty()).then_some((option, value))
}

fn is_host(host: &str) -> bool {
    host.contains('.') && !host.starts_with('.') && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
}

/// Returns the address of another machine that a word holds: behind a scheme, in the form of `scp`, or as the host in front of a module or a
/// repository that `go`, `docker` and `terraform` fetch. To `curl` a host alone is an address. Buckets and files have schemes too, and no host.
fn address(program: &str, text: &str) -> Option<String> {
    const OF_HOSTS: [&str; 5] = ["ftp", "git", "oci", "rsync", "ssh"];
    if let Some((front, rest)) = text.split_once("://") {
        let scheme = front.rsplit(|char: char| !char.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
        // Settings that `kubectl` writes down are not fetched.
        let is_setting = program == "kubectl" && front.matches('=').count() > usize::from(front.starts_with('-'));
        let host = rest.split(['/', '?', '#']).next().and_then(|authority| authority.rsplit('@').next()).unwrap_or_default();
        return match scheme.as_str() {
            _ if is_setting => None,
            "http" | "https" => Some(format!("{scheme}://{rest}")),
            scheme => (OF_HOSTS.contains(&scheme) || host.contains('.')).then(|| format!("https://{host}/")),
        };
    }
    // `npm` needs no slashes behind a scheme, and some schemes are the host of a repository.
    let takes_short = matches!(program, "bun" | "bunx" | "npm" | "npx" | "pnpm" | "yarn");
    let short = |(scheme, rest): (&str, &str)| match scheme.rsplit(['+', '@', '=']).next().unwrap_or_default() {
        "http" | "https" => rest.trim_start_matches('/').split('/').next().map(str::to_owned),
        host @ ("bitbucket" | "gist" | "github" | "gitlab") => Some(format!("{host}.com")),
        _ => None,
    };
    let shortened = text.split_once(':').filter(|(_, rest)| takes_short && rest.contains(['.', '/'])).and_then(short);
    let copied = text.split_once('@').filter(|(user, _)| !user.is_empty()).and_then(|(_, rest)| rest.split_once(':'));
    let fetched = match program {
        "curl" | "http" | "https" | "wget" | "xh" => Some(text),
        "docker" | "kubectl" | "nerdctl" | "podman" => Some(text).filter(|text| text.starts_with("github.com/")),
        "go" => Some(text).filter(|text| text.contains('@')),
        "terraform" | "tofu" => text.trim_start_matches('-').strip_prefix("from-module="),
        _ => None,
    };
    let host = copied.map(|(host, _)| host).or_else(|| fetched?.split(['/', '@']).next()).filter(|host| is_host(host));
    shortened.or_else(|| host.map(str::to_owned)).map(|host| format!("https://{host}/"))
}

fn texts_of_gh(arguments: &[Argument]) -> Vec<usize> {
    let [group, subcommand, ..] = arguments else { return Vec::new() };
    let row = TEXTS_OF_GH.iter().find(|(groups, subcommands, ..)| is_in(groups, &group.text) && is_in(subcommands, &subcommand.text));
    row.map_or_else(Vec::new, |(_, _, texts, flags)| values(arguments, 2, texts, flags))
}

/// Returns the places of what `kubectl exec` gives a container. `kubectl` takes options of its own in front of the dashes.
fn in_pod(arguments: &[Argument]) -> Vec<usize> {
    let mut rest = arguments.iter().map(|argument| argument.text.as_str());
    let subcommand = loop {
        match rest.next() {
            Some(option) if is_in(VALUES_OF_KUBECTL, option) => drop(rest.next()),
            Some(option) if option.starts_with("--") && option.contains('=') => {}
            other => break other,
        }
    };
    let end = arguments.iter().position(|argument| argument.text == "--").filter(|_| subcommand == Some("exec"));
    end.map_or_else(Vec::new, |end| (end + 1..arguments.len()).collect())
}

/// Returns the places of what `docker run` and `docker exec` give a container: the words behind its name or image, and values of
/// options such as `-w`. Where an option is not known, the name may be its value, and nothing is left out.
fn in_container(arguments: &[Argument]) -> Vec<usize> {
    let text = |at: usize| text_at(arguments, at);
    if text(0) == "build" || text(0) == "buildx" && text(1) == "build" {
        return values(arguments, 1, VALUES_OF_BUILDS, FLAGS_WITH_BUILDS);
    }
    let Some(subcommand) = (0..arguments.len().min(2)).find(|at| matches!(text(*at), "run" | "exec")) else { return Vec::new() };
    if subcommand == 1 && !matches!(text(0), "compose" | "container") {
        return Vec::new();
    }
    let valued = if text(subcommand) == "exec" { VALUES_OF_EXEC } else { VALUES_OF_CONTAINERS };
    let (mut others, mut at) = (Vec::new(), subcommand + 1);
    while text(at).starts_with('-') && text(at) != "--" {
        let option = text(at);
        match option {
            _ if is_in(FLAGS_OF_CONTAINERS, option) => at += 1,
            _ if is_in(valued, option) => {
                others.push(at + 1);
                at += 2;
            }
            "-v" | "--volume" | "--mount" | "--env-file" | "-f" | "--file" => at += 2,
            _ if option.starts_with("--") && option.contains('=') => {
                let is_known = option.split_once('=').is_some_and(|(option, _)| is_in(valued, option));
                others.extend(is_known.then_some(at));
                at += 1;
            }
            _ => return others,
        }
    }
    others.extend(at + 1..arguments.len());
    others
}

//! Containers and clusters: what shows their state.
//!
//! Left out: all that starts, changes, copies or forwards something; options that choose another server or another file of settings,
//! because such a file names programs (`--kubeconfig`, `--config`, `-H`, `--server`, `--as`, `--raw`, `-k`); `helm template` with a file
//! of a setting, another program or a folder to write to, and `search hub`. Subcommands that are not listed may be plugins.

use super::checks::{Checked, files};
use super::{Operands, PROGRAM, Program, Subcommand, any, most};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program { names: &["docker", "podman", "nerdctl"], options: "--version -v", subcommands: DOCKER, ..PROGRAM },
    Program {
        names: &["docker-compose", "podman-compose"],
        options: "--version -v --profile=WORD -p=WORD --project-name=WORD --ansi=WORD --no-ansi",
        subcommands: COMPOSE,
        ..PROGRAM
    },
    Program {
        names: &["kubectl"],
        options: "-n=WORD --namespace=WORD --context=WORD --request-timeout=WORD",
        subcommands: KUBECTL,
        ..PROGRAM
    },
    Program { names: &["helm"], options: "-n=WORD --namespace=WORD --kube-context=WORD", subcommands: HELM, ..PROGRAM },
];

/// TABLE: what `docker` shows.
const DOCKER: &[Subcommand] = &[
    any(
        "ps container.ls container.list container.ps",
        "-a --all -f=WORD --filter=WORD --format=WORD -n=WORD --last=WORD -l --latest --no-trunc -q --quiet -s --size",
    ),
    any("images image.ls image.list", "-a --all --digests -f=WORD --filter=WORD --format=WORD --no-trunc -q --quiet --tree"),
    any("logs container.logs", "--details -f --follow --since=WORD -n=WORD --tail=WORD -t --timestamps --until=WORD"),
    any("inspect container.inspect image.inspect network.inspect volume.inspect", "-f=WORD --format=WORD -s --size --type=WORD"),
    any("stats container.stats", "-a --all --format=WORD --no-stream --no-trunc"),
    most("top container.top", 1, ""),
    any("port container.port diff container.diff", ""),
    any("history image.history", "--format=WORD -H --human --no-trunc -q --quiet"),
    any("network.ls network.list", "-f=WORD --filter=WORD --format=WORD --no-trunc -q --quiet"),
    any("volume.ls volume.list", "-f=WORD --filter=WORD --format=WORD -q --quiet"),
    any("system.df", "--format=WORD -v --verbose"),
    most("version", 0, "-f=WORD --format=WORD"),
    most("info system.info", 0, "-f=WORD --format=WORD"),
    most("context.ls context.show", 0, "--format=WORD -q --quiet"),
    any("compose.ps", COMPOSE_PS),
    any("compose.logs", COMPOSE_LOGS),
    any("compose.config", COMPOSE_CONFIG),
    any("compose.images compose.top compose.port", ""),
    any("compose.ls", "-a --all --filter=WORD --format=WORD -q --quiet"),
    most("compose.version", 0, "-f=WORD --format=WORD --short"),
];

const COMPOSE_PS: &str = "-a --all --filter=WORD --format=WORD --no-trunc --orphans -q --quiet --services --status=WORD";
const COMPOSE_LOGS: &str = "-f --follow --index=WORD --no-color --no-log-prefix --since=WORD -n=WORD --tail=WORD -t --timestamps \
         --until=WORD";
const COMPOSE_CONFIG: &str = "--format=WORD --hash=WORD --images --no-consistency --no-interpolate --no-normalize --profiles -q --quiet \
                              --services --volumes";

/// TABLE: what `docker-compose` shows.
const COMPOSE: &[Subcommand] = &[
    any("ps", COMPOSE_PS),
    any("logs", COMPOSE_LOGS),
    any("config", COMPOSE_CONFIG),
    any("images top port", ""),
    any("ls", "-a --all --filter=WORD --format=WORD -q --quiet"),
    most("version", 0, "-f=WORD --format=WORD --short"),
];

/// TABLE: what `kubectl` shows. A file that is read is no address: `FILE`.
const KUBECTL: &[Subcommand] = &[
    any(
        "get",
        "-n=WORD --namespace=WORD --context=WORD --request-timeout=WORD -A --all-namespaces --allow-missing-template-keys \
         --chunk-size=WORD --field-selector=WORD -f=FILE --filename=FILE --ignore-not-found -L=WORD --label-columns=WORD --no-headers \
         -o=WORD --output=WORD --output-watch-events -R --recursive -l=WORD --selector=WORD --show-kind --show-labels \
         --show-managed-fields --sort-by=WORD --subresource=WORD --template=WORD -w --watch --watch-only",
    ),
    any(
        "describe",
        "-n=WORD --namespace=WORD --context=WORD --request-timeout=WORD -A --all-namespaces --chunk-size=WORD -f=FILE --filename=FILE -R \
         --recursive -l=WORD --selector=WORD --show-events",
    ),
    any(
        "logs",
        "-n=WORD --namespace=WORD --context=WORD --request-timeout=WORD --all-containers --all-pods -c=WORD --container=WORD -f --follow \
         --ignore-errors --limit-bytes=WORD --max-log-requests=WORD --prefix -p --previous -l=WORD --selector=WORD --since=WORD \
         --since-time=WORD --tail=WORD --timestamps",
    ),
    any(
        "top top.pod top.pods top.node top.nodes",
        "-n=WORD --namespace=WORD --context=WORD -A --all-namespaces --containers --no-headers -l=WORD --selector=WORD \
             --sort-by=WORD --sum",
    ),
    any(
        "events",
        "-n=WORD --namespace=WORD --context=WORD -A --all-namespaces --for=WORD --types=WORD -o=WORD --output=WORD -w \
             --watch --no-headers",
    ),
    any("explain", "--context=WORD --api-version=WORD --recursive --output=WORD"),
    any(
        "api-resources",
        "--context=WORD --api-group=WORD --cached --categories=WORD --namespaced[=WORD] --no-headers -o=WORD \
             --output=WORD --sort-by=WORD --verbs=WORD",
    ),
    most("api-versions cluster-info", 0, "--context=WORD"),
    most("version", 0, "--client -o=WORD --output=WORD --short --context=WORD"),
    any("auth.can-i", "-n=WORD --namespace=WORD --context=WORD -A --all-namespaces --list --no-headers -q --quiet --subresource=WORD"),
    most("auth.whoami", 0, "-o=WORD --output=WORD --context=WORD"),
    any(
        "rollout.status",
        "-n=WORD --namespace=WORD --context=WORD -f=FILE --filename=FILE -l=WORD --selector=WORD --revision=WORD \
             --timeout=WORD -w --watch[=WORD]",
    ),
    any(
        "rollout.history",
        "-n=WORD --namespace=WORD --context=WORD -f=FILE --filename=FILE -l=WORD --selector=WORD --revision=WORD \
             -o=WORD --output=WORD",
    ),
    any(
        "wait",
        "-n=WORD --namespace=WORD --context=WORD -A --all-namespaces --all --for=WORD --timeout=WORD -l=WORD \
             --selector=WORD -f=FILE --filename=FILE",
    ),
    // Without `--raw` it leaves secrets out.
    most("config.view", 0, "--minify -o=WORD --output=WORD --context=WORD"),
    most("config.current-context config.get-clusters config.get-users", 0, ""),
    any("config.get-contexts", "-o=WORD --output=WORD --no-headers"),
];

/// TABLE: what `helm` shows.
const HELM: &[Subcommand] = &[
    any(
        "list ls",
        "-n=WORD --namespace=WORD --kube-context=WORD -a --all -A --all-namespaces -d --date --deployed --failed -f=WORD \
        --filter=WORD -m=WORD \
         --max=WORD --no-headers --offset=WORD -o=WORD --output=WORD --pending -r --reverse -l=WORD --selector=WORD -q --short \
         --superseded --uninstalled --uninstalling",
    ),
    any("status", "-n=WORD --namespace=WORD --kube-context=WORD -o=WORD --output=WORD --revision=WORD --show-desc --show-resources"),
    any("history hist", "-n=WORD --namespace=WORD --kube-context=WORD --max=WORD -o=WORD --output=WORD"),
    any("get.values", "-n=WORD --namespace=WORD --kube-context=WORD -a --all -o=WORD --output=WORD --revision=WORD"),
    any("get.manifest get.notes get.hooks get.all get.metadata", "-n=WORD --namespace=WORD --kube-context=WORD --revision=WORD"),
    Subcommand {
        names: "lint",
        options: "-n=WORD --namespace=WORD --quiet --strict --with-subcharts -f=FILE --values=FILE",
        operands: Operands::Checked(charts),
    },
    Subcommand {
        names: "template",
        options: "-n=WORD --namespace=WORD -f=FILE --values=FILE --set=WORD --set-string=WORD -s=WORD --show-only=WORD -a=WORD \
                  --api-versions=WORD --kube-version=WORD --include-crds --skip-tests --no-hooks --is-upgrade -g --generate-name \
                  --release-name --debug",
        operands: Operands::Checked(charts),
    },
    any("search.repo", "--devel --fail-on-no-result --max-col-width=WORD -o=WORD --output=WORD -r --regexp --version=WORD -l --versions"),
    most("repo.list repo.ls", 0, "-o=WORD --output=WORD"),
    most("version", 0, "--short --template=WORD"),
    most("env", 1, ""),
];

/// Accepts charts in folders.
fn charts(operands: &[&Argument]) -> Checked {
    files(operands)?;
    if operands.iter().any(|operand| operand.text.contains(':')) { Err("a chart that is an address") } else { Ok(()) }
}

"""The parts of the tests: what each proves, how long it usually takes, and how it runs."""

import concurrent.futures
import dataclasses
import os
import shutil

from programs import TARGET, TOP, Step, run_command, run_program


@dataclasses.dataclass(frozen=True)
class Part:
    """A part: whether `./test` has it without `--all`, whether it waits most of the time or computes, and its usual minutes."""

    name: str
    quick: bool
    waits: bool
    minutes: float
    proves: str
    run: object


class Run:
    """What the parts of one run share: the programs that were built, and where to print."""

    def __init__(self, terminal, programs):
        self.terminal = terminal
        self.programs = programs

    def find(self, package, name):
        return next(program for program in self.programs if (program.package, program.name) == (package, name))

    def kafka(self, part, *arguments, environment=None):
        program = self.find("tollgate", "kafka")
        return [run_program(self.terminal, part, program, arguments, environment, side_by_side=True)]

    def kafka_cases(self, part, cases, environment):
        """Runs some cases of the Kafka program, each by itself: the program takes one name."""
        return [step for case in cases for step in self.kafka(part, "--exact", case, environment=environment)]

    def integration(self, part, package, *arguments):
        return [run_program(self.terminal, part, self.find(package, "integration"), arguments)]

    def command(self, part, name, *words, environment=None):
        return [run_command(self.terminal, part, name, words, environment)]


# Cases of the integration programs that belong to other parts.
ELSEWHERE = {"tollgate-fuzz": "short_run::", "tollgate-differential": "commands::"}


def lint(_run):
    """Format and build come before every part, and lint."""
    return []


# What waits for terminals, sockets and time-outs runs beside the rest: these modules of the command line's tests, and this program.
WAITING = ("brokers::", "terminal::", "traces::")


WAITS = ("tollgate-worker", "integration")


def waiting_units(run):
    return run.integration("units", "tollgate", *WAITING) + run.integration("units", WAITS[0])


def units(run):
    aside = concurrent.futures.ThreadPoolExecutor().submit(waiting_units, run)
    steps = []
    for program in run.programs:
        if program.name == "kafka" or program.package == "tollgate-bench" or (program.package, program.name) == WAITS:
            continue
        skipped = [ELSEWHERE[program.package]] if program.kind == "test" and program.package in ELSEWHERE else []
        if (program.package, program.name) == ("tollgate", "integration"):
            skipped += WAITING
        steps.append(run_program(run.terminal, "units", program, [word for skip in skipped for word in ("--skip", skip)]))
    return steps + aside.result()


def kafka(run):
    return run.kafka("kafka", "--skip", "faults::")


def faults(run):
    return run.kafka("faults", "faults::")


def chaos(run):
    kills = {"TOLLGATE_CHAOS_KILLS": "300", "TOLLGATE_ABUSE_KILLS": "60", "TOLLGATE_CHAOS_SEED": "7"}
    return run.kafka_cases("chaos", ("chaos::faults_change_no_verdict", "abuse::kills_change_no_signal_alert_or_control"), kills)


def fuzz(run):
    return run.integration("fuzz", "tollgate-fuzz", "short_run::")


def jail(run):
    return run.integration("jail", "tollgate-differential", "commands::")


def bench(run):
    return [run_program(run.terminal, "bench", program) for program in run.programs if program.package == "tollgate-bench"]


def helm(run):
    return run.command("helm", "chart", "tests/helm/run", environment={"TOLLGATE": str(TARGET / "debug/tollgate")})


def compose(run):
    return run.command("compose", "composition and workflows", "tests/deploy/tools/run")


def image(run):
    lacking = [program for program in ("rustup", "debootstrap") if not shutil.which(program)]
    if os.geteuid() != 0 or lacking:
        return [Step("image", "stages", skipped=[("stages", f"it takes root, rustup and debootstrap; {lacking or 'not root'}")])]
    return run.command("image", "stages", "tests/image/run")


def python(run):
    client = str(TOP / "clients/python")
    words = [str(TARGET / "client-venv/bin/python"), "-m", "pytest", "-q", "--rootdir", client, "-c", f"{client}/pyproject.toml", f"{client}/tests"]
    return run.command("python", "the Python client", *words, environment={"TOLLGATE_BIN": str(TARGET / "debug/tollgate")})


# Frameworks whose dependencies contradict those of the others, each with its files of tests; the page has no Python for Hermes.
APART = {
    "crewai": ("test_crewai", "test_adapters", "test_docs"),
    "hermes": ("test_hermes", "test_adapters"),
    "deerflow": ("test_deerflow", "test_deerflow_factory", "test_adapters"),
}


def frameworks(run):
    client = TOP / "clients/python"
    steps = []
    for host, names in APART.items():
        files = [str(client / "tests" / f"{name}.py") for name in names]
        words = [str(TARGET / f"{host}-venv/bin/python"), "-m", "pytest", "-q", "--rootdir", str(client), "-c", str(client / "pyproject.toml"), *files]
        steps += run.command("frameworks", f"the Python client in {host}", *words, environment={"TOLLGATE_TEST_HOST": host})
    return steps


def typescript(run):
    environment = {"TOLLGATE_BIN": str(TARGET / "debug/tollgate")}
    return run.command("typescript", "the TypeScript client", "clients/typescript/run", environment=environment)


def example(language):
    """Returns the part of a program in examples, which has a script of its own."""
    environment = {"TOLLGATE_BIN": str(TARGET / "debug/tollgate")}
    return lambda run: run.command(language, f"the {language} program", f"examples/{language}/run", environment=environment)


PARTS = (
    Part("kafka", True, True, 9, "every case on a real Kafka, a short chaos run, two faults of three brokers, alerts on a real Prometheus", kafka),
    Part("lint", True, False, 5, "format and clippy, as every part does before it begins", lint),
    Part("units", True, False, 5, "unit, property, golden and snapshot tests, the corpora of the fuzz targets, the attacks", units),
    Part("python", True, True, 4, "the Python client over HTTP and Kafka: the cases of every client and adapter, faults, real frameworks, the proxy for MCP servers, the snippets", python),
    Part("frameworks", False, True, 6, "the Python client in frameworks that take an environment of their own", frameworks),
    Part("typescript", False, True, 2, "the TypeScript client and its adapters, in the real frameworks and on the real program", typescript),
    Part("go", False, True, 1, "the Go program: the cases of every client, a real gate, the page that shows it", example("go")),
    Part("java", False, True, 2, "the Java program with Spring's ReplyingKafkaTemplate, on the embedded broker", example("java")),
    Part("faults", False, True, 12, "the other faults of three brokers, one of each kind, and both stages while brokers fail", faults),
    Part("chaos", False, True, 8, "300 kills of workers and of the broker, and 60 in both stages", chaos),
    Part("bench", False, False, 1, "the benchmarks' own tests, and a baseline that decides as the gate does", bench),
    Part("jail", False, False, 2, "allowed command lines in real shells, inside a jail", jail),
    Part("fuzz", False, False, 3, "each fuzz target for some thousand inputs, guided by coverage", fuzz),
    Part("compose", False, False, 2, "docker-compose.yml, the workflows and the OpenAPI document, read by their own tools", compose),
    Part("helm", False, False, 3, "the chart, rendered and checked by Helm and the schemas of Kubernetes", helm),
    Part("image", False, False, 10, "each stage of the Dockerfile, in a root of its own (needs root)", image),
)

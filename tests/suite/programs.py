"""Builds the test programs with cargo, runs a program and reads its output."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")).resolve()
LOGS = TARGET / "test-logs"
# A test that is skipped for want of a broker fails.
ENVIRONMENT = os.environ | {"CI": "true"}

CASE = re.compile(r"^test (\S+)(?: - should panic)? +\.\.\. (ok|FAILED|ignored)(?:, (.*)| \((.*)\))?$")
# What the harness of the Kafka cases prints of each case, since these run side by side.
TIMED = re.compile(r"^ +(\d+\.\d) s  (\S+)$")
SUMMARY = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;")


@dataclasses.dataclass
class Program:
    """A test program that cargo has built."""

    package: str
    kind: str
    name: str
    path: str
    folder: str

    def repeat(self, case):
        """Returns the command that runs one case again."""
        target = "--lib" if self.kind == "lib" else f"--{self.kind} {self.name}"
        return f"cargo test -p {self.package} {target} -- --exact {case}"

    def __str__(self):
        return f"{self.package} {'unit tests' if self.kind == 'lib' else self.name}"


@dataclasses.dataclass
class Step:
    """What one step of a part came to. `slow` holds seconds, program and case; `failures` what to read; `skipped` cases and reasons."""

    part: str
    name: str
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    slow: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)


class Terminal:
    """Prints lines of several threads, each with the time since the beginning."""

    def __init__(self):
        self.lock = threading.Lock()
        self.started = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.started

    def say(self, text):
        with self.lock:
            print(f"test: {self.seconds():4.0f} s: {text}", flush=True)


# What is built, with one set of features. Benchmarks are built to be linted.
BUILDS = (["--no-run"], ["--bench", "*", "--no-run"])


def build(terminal):
    """Builds all programs, and returns the test programs with the steps of building and linting. One pass of the compiler does both: a pass
    that only checks would compile every dependency a second time."""
    environment = ENVIRONMENT | {"RUSTC_WORKSPACE_WRAPPER": "clippy-driver"}
    programs, said, failed, began = [], [], False, terminal.seconds()
    for targets in BUILDS:
        command = ["cargo", "test", "--workspace", *targets, "--message-format=json"]
        terminal.say(" ".join(command))
        with subprocess.Popen(command, cwd=TOP, env=environment, stdout=subprocess.PIPE, text=True) as cargo:
            for message in map(json.loads, cargo.stdout):
                if message["reason"] == "compiler-message" and message["message"]["rendered"] not in said:
                    said.append(message["message"]["rendered"])
                elif message["reason"] == "compiler-artifact" and message["target"]["kind"][0] in ("lib", "test"):
                    programs += test_program(message)
        failed = cargo.returncode != 0
        if failed:
            break
    built = Step("build", "all programs", seconds=terminal.seconds() - began, passed=int(not failed), failed=int(failed))
    if failed:
        built.failures.append("".join(said) or "the programs do not compile: cargo has said why")
        return [], [built]
    return programs, [built, Step("lint", "clippy", passed=int(not said), failed=int(bool(said)), failures=["".join(said)] if said else [])]


def test_program(message):
    """Returns the program that cargo says it has built, if it is a test program."""
    if not message["profile"]["test"] or not message.get("executable"):
        return []
    folder = pathlib.Path(message["manifest_path"]).parent
    package = re.search(r'^name = "(.+)"$', (folder / "Cargo.toml").read_text(), re.MULTILINE).group(1)
    target = message["target"]
    return [Program(package, target["kind"][0], target["name"], message["executable"], str(folder))]


def run_program(terminal, part, program, arguments=(), environment=None, side_by_side=False):
    """Runs the cases of a program: one after the other, so that the time between two results is the time of a case, or as its own harness
    runs them."""
    step = Step(part, str(program))
    words = [program.path, *arguments]
    if not side_by_side:
        words.append("--test-threads=1")
    environment = ENVIRONMENT | {"CARGO_MANIFEST_DIR": program.folder} | (environment or {})
    LOGS.mkdir(parents=True, exist_ok=True)
    # Two runs of a program in one part differ in the cases that are chosen.
    chosen = "-" + arguments[-1].strip(":").replace("::", ".") if arguments and "--skip" not in arguments else ""
    log_path = LOGS / f"{part}-{program.package}-{program.name}{chosen}.log"
    started = last = time.monotonic()
    failures = []
    summary = None
    with open(log_path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(words, cwd=program.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        for line in process.stdout:
            now = time.monotonic()
            log.write(f"{now - started:8.1f} {line}")
            log.flush()
            line = line.rstrip("\n")
            if failures or line == "failures:":
                failures.append(line)
            if timed := TIMED.match(line):
                step.slow.append((float(timed.group(1)), str(program), timed.group(2)))
            elif case := CASE.match(line):
                if not side_by_side:
                    step.slow.append((now - last, str(program), case.group(1)))
                last = now
                if case.group(2) == "ignored":
                    step.skipped.append((case.group(1), case.group(3) or case.group(4) or "no reason is given"))
                elif case.group(2) == "FAILED":
                    terminal.say(f"{part}: FAILED: {case.group(1)}")
            elif found := SUMMARY.match(line):
                summary = [int(number) for number in found.groups()]
        code = process.wait()
    step.seconds = time.monotonic() - started
    if summary:
        step.passed, step.failed, _ignored = summary
    if code != 0:
        step.failed = max(step.failed, 1)
        names = [line.strip() for line in failures[len(failures) - failures[::-1].index("failures:"):] if line.strip()] if failures else []
        names = [name for name in names if " " not in name]
        text = "\n".join(failures) or f"{program} ended with {code} and named no case:\n{log_path.read_text(errors='replace')[-4_000:]}"
        repeats = "\n".join(f"repeat: {program.repeat(name)}" for name in names)
        step.failures.append(f"{text}\n{repeats}\nlog: {log_path}")
    elif step.passed + len(step.skipped) == 0:
        # A name that no case has must not read as a pass.
        step.failed = 1
        step.failures.append(f"{program} {' '.join(arguments)}: no case ran\nlog: {log_path}")
    terminal.say(f"{part}: {step.seconds:.1f} s: {program}: {step.passed} passed, {step.failed} failed, {len(step.skipped)} skipped")
    return step


def run_command(terminal, part, name, words, environment=None):
    """Runs a command that passes or fails as a whole. Its output is kept in a file, and shown if it fails."""
    terminal.say(f"{part}: {' '.join(words)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / f"{part}-{name}.log"
    started = time.monotonic()
    with open(log_path, "w", encoding="utf-8") as log:
        code = subprocess.run(words, cwd=TOP, env=ENVIRONMENT | (environment or {}), stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT, check=False).returncode
    step = Step(part, name, seconds=time.monotonic() - started)
    if code != 0:
        step.failed = 1
        step.failures.append(f"{' '.join(words)}: exit code {code}\n{log_path.read_text(errors='replace')[-20_000:]}\nlog: {log_path}")
        terminal.say(f"{part}: FAILED: {name}")
    else:
        step.passed = 1
    terminal.say(f"{part}: {step.seconds:.1f} s: {name}")
    return step

"""Runs the tests: tests/suite [--all | --only PART,… | --list]. `./test` installs what is missing, and runs this.

The programs are built first. Then two lanes run beside each other: parts that wait most of the time, and parts that compute.
"""

import argparse
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table
from parts import PARTS, Run
from programs import TOP, Step, Terminal, build, run_command


def arguments():
    parser = argparse.ArgumentParser(prog="./test", description="Without an argument: what every change has to pass.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--all", action="store_true", help="all parts: what a release has to pass")
    choice.add_argument("--only", metavar="PART", action="append", help="this part alone; may be given several times")
    choice.add_argument("--list", action="store_true", help="name the parts, with their usual minutes on two cores")
    given = parser.parse_args()
    unknown = set(given.only or ()) - {part.name for part in PARTS}
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(part.name for part in PARTS)}")
    return given


def listing():
    """Prints the parts, those of `./test` first."""
    for title, quick in (("./test", True), ("./test --all, besides", False)):
        print(title)
        for part in (part for part in PARTS if part.quick == quick):
            print(f"  {part.name:10} {part.minutes:3} min  {part.proves}")


def lane(run, parts, steps):
    """Runs parts one after the other."""
    for part in parts:
        try:
            steps += part.run(run)
        except Exception as error:  # A part that breaks must not read as a part that passed.
            steps.append(Step(part.name, "the part itself", failed=1, failures=[repr(error)]))


def main():
    given = arguments()
    if given.list:
        listing()
        return 0
    chosen = [part for part in PARTS if given.all or (part.name in given.only if given.only else part.quick)]
    terminal = Terminal()
    steps = [run_command(terminal, "lint", "format", ["cargo", "fmt", "--all", "--check"])]
    programs = []
    if not steps[0].failed:
        programs, built = build(terminal)
        steps += built
    if programs:
        run = Run(terminal, programs)
        waiting, computing = [], []
        aside = threading.Thread(target=lane, args=(run, [part for part in chosen if part.waits], waiting))
        aside.start()
        lane(run, [part for part in chosen if not part.waits], computing)
        aside.join()
        steps += computing + waiting
    return table.show(steps, terminal.seconds())


if __name__ == "__main__":
    os.chdir(TOP)
    sys.exit(main())

"""Reads a Dockerfile into stages, and says which files a .dockerignore leaves in the context.

Only what our Dockerfile uses is understood. Anything else is an error, so that nothing in the file is left unproven.
"""

import fnmatch
import json
import os
import re
import shlex
from dataclasses import dataclass, field


@dataclass
class Stage:
    """A stage: what it begins from, its name, and its instructions in order as (name, arguments)."""

    base: str
    name: str
    instructions: list = field(default_factory=list)

    def last(self, name):
        """Returns the arguments of the last instruction of this name, or fails."""
        found = [arguments for known, arguments in self.instructions if known == name]
        if not found:
            raise SystemExit(f"Dockerfile: stage {self.name} has no {name}")
        return found[-1]


KNOWN = {"RUN", "COPY", "ARG", "ENV", "WORKDIR", "USER", "LABEL", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def stages(text):
    """Returns the stages of a Dockerfile in order."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = []
    for line in joined.splitlines():
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            matched = re.fullmatch(r"(\S+) AS (\S+)", arguments)
            if not matched:
                raise SystemExit(f"Dockerfile: write `FROM image AS name`: {line}")
            found.append(Stage(*matched.groups()))
        elif name not in KNOWN or not found:
            raise SystemExit(f"Dockerfile: an instruction that this proof does not know: {line}")
        elif name == "RUN" and arguments.startswith(("--", "<<")):
            raise SystemExit(f"Dockerfile: an option of RUN that this proof does not know: {line}")
        else:
            found[-1].instructions.append((name, arguments))
    return found


def assignments(arguments):
    """Returns the pairs of `ENV a=b c="d"` and `LABEL …`, and of `ARG a=b` or `ARG a`."""
    return [tuple(word.partition("=")[::2]) for word in shlex.split(arguments)]


def vector(arguments):
    """Returns the words of a command in its JSON form: there is no shell that could split one."""
    at = arguments.find("[")
    if at < 0:
        raise SystemExit(f"Dockerfile: write a list, for the base has no shell: {arguments}")
    return json.loads(arguments[at:])


def expand(text, variables):
    """Replaces $NAME and ${NAME}; a variable that is not known is an error."""

    def value(matched):
        name = matched.group(1) or matched.group(2)
        if name not in variables:
            raise SystemExit(f"Dockerfile: ${name} is not known in {text!r}")
        return variables[name]

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, text)


def context(root, ignore):
    """Returns the files of a build context, relative to its root: those that the patterns leave, of which the last that fits counts."""
    patterns = [line.strip() for line in ignore.splitlines() if line.strip() and not line.startswith("#")]
    kept = []
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root)
        # A pattern that begins with `!` may bring back what is below a folder that is left out, but never below these.
        folders[:] = [name for name in folders if os.path.normpath(os.path.join(here, name)) not in (".git", "target")]
        kept += [path for path in (os.path.normpath(os.path.join(here, name)) for name in names) if not is_ignored(path, patterns)]
    return sorted(kept)


def is_ignored(path, patterns):
    """Returns whether a path is left out: a pattern fits it or a folder above it."""
    parts = path.split("/")
    above = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    ignored = False
    for pattern in patterns:
        brings_back = pattern.startswith("!")
        pattern = pattern.removeprefix("!").strip("/")
        if any(fits(name, pattern) for name in above):
            ignored = not brings_back
    return ignored


def fits(name, pattern):
    """Returns whether a pattern fits a whole name; `*` stands for anything within one folder."""
    names, patterns = name.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(fnmatch.fnmatchcase(*pair) for pair in zip(names, patterns))

"""Tries an installed wheel: `tollgate dev` answers the client, and the two are of one version. `tests/release/wheel` runs this."""

import importlib.metadata
import shutil
import socket
import subprocess
import sys

from tollgate import Gate


def main():
    """Ends with an error unless the program of this environment allows a call and denies another."""
    program = shutil.which("tollgate")
    if program is None or not program.startswith(sys.prefix):
        raise SystemExit(f"wheel: the environment has no program `tollgate`: found {program}")
    said = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    version = importlib.metadata.version("tollgate")
    if version not in said:
        raise SystemExit(f"wheel: the package is of version {version}, and the program says {said.strip()}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with subprocess.Popen([program, "dev", "--http", address], stdout=subprocess.DEVNULL) as gate:
        try:
            codes = ask(gate, address)
        finally:
            gate.terminate()
    if codes != ["allow", "oap.tool_not_allowed"]:
        raise SystemExit(f"wheel: the program answered {codes}")
    print(f"wheel: {said.strip()} allows and denies")


def ask(program, address):
    """Returns the codes of a call that `dev` allows and of a call that `dev` denies."""
    with Gate(f"http://{address}", deadline=30) as gate:
        while True:
            verdicts = [gate.tool_call("t", name, {}, tool_call_id=name) for name in ("read_file", "bash")]
            if all(verdict.decided_by != "client" for verdict in verdicts):
                return [verdict.code for verdict in verdicts]
            if program.poll() is not None:
                raise SystemExit(f"wheel: `tollgate dev` ended with {program.returncode}")


if __name__ == "__main__":
    main()

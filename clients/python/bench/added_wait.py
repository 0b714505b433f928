"""Prints the wait of the client over that of bare httpx, against the same gate: `python bench/added_wait.py [CALLS]`.

The two take turns call by call, so that both see the same machine.
"""

import json
import pathlib
import statistics
import sys
import time

import httpx

from tollgate import Gate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))
from fake_gate import FakeGate  # noqa: E402

WARM_UP = 50


def main(calls: int) -> None:
    """Measures and prints the medians in microseconds, and their ratio."""
    fake = FakeGate()
    arguments = {"command": "ls -la", "paths": ["a"] * 50}
    waits: dict[str, list[float]] = {"httpx": [], "client": []}
    with Gate(fake.url) as gate, httpx.Client(trust_env=False) as bare:

        def ask_bare(number: int) -> None:
            event = {"type": "tool_call", "thread_id": "t", "event_id": f"b{number}", "tool_name": "bash", "tool_input": arguments}
            headers = {"content-type": "application/json"}
            response = bare.post(fake.url + "/v1/events", content=json.dumps(event).encode(), headers=headers)
            assert response.json()["allows_execution"]

        def ask_client(number: int) -> None:
            assert gate.tool_call("t", "bash", arguments, tool_call_id=f"c{number}").allows_execution

        for number in range(calls + WARM_UP):
            for name, ask in (("httpx", ask_bare), ("client", ask_client)):
                started = time.perf_counter()
                ask(number)
                if number >= WARM_UP:
                    waits[name].append(time.perf_counter() - started)
    fake.close()
    medians = {name: statistics.median(found) * 1e6 for name, found in waits.items()}
    print(f"{calls} calls, p50: httpx {medians['httpx']:.0f} µs, client {medians['client']:.0f} µs")
    print(f"ratio {medians['client'] / medians['httpx']:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)

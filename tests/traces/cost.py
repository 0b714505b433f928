"""Measures what traces cost: CPU time of `tollgate dev` (worker and embedded broker in one process) per event, with no traces, with one
verdict in 100 and with all of them, in turns. A collector that takes everything runs beside it and is not counted.

    cargo build --release && pip install confluent-kafka
    python tests/traces/cost.py target/release/tollgate [EVENTS] [ROUNDS]
"""

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from confluent_kafka import Producer

BINARY = sys.argv[1]
EVENTS = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
TRACEPARENT = "00-{:032x}-{:016x}-{}"


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def metrics(url):
    text = urllib.request.urlopen(url).read().decode()
    total = lambda name: sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))
    names = ["tollgate_verdicts_total", "tollgate_traces_exported_total", "tollgate_traces_dropped_total"]
    return [total(name) for name in names]


def cpu_seconds(process):
    """User and system time of a process, of /proc: the metric has whole seconds only."""
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(mode, endpoint):
    sampled = {"off": 0, "1 %": 100, "100 %": 1}[mode]
    traces = f"{{endpoint: '{endpoint}'}}" if sampled else "{}"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(f"admin: {{listen: '127.0.0.1:0'}}\ntraces: {traces}\n")
        config.flush()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TOLLGATE", "OTEL"))}
        command = [BINARY, "dev", "--port", "0", "--config", config.name]
        worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        said, found = "", {}
        while len(found) < 2:
            line = worker.stderr.readline()
            assert line, said
            said += line
            for name, pattern in [("brokers", r"broker\D*(127\.0\.0\.1:\d+)"), ("metrics", r"(http://127\.0\.0\.1:\d+/metrics)")]:
                match = re.search(pattern, line)
                if match:
                    found[name] = match.group(1)
        threading.Thread(target=worker.stderr.read, daemon=True).start()
        try:
            before, cpu_before = metrics(found["metrics"]), cpu_seconds(worker)
            producer = Producer({"bootstrap.servers": found["brokers"], "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000})
            for number in range(EVENTS):
                thread = f"t{number % 1000}"
                call = {"type": "tool_call", "thread_id": thread, "event_id": f"e{number}", "tool_call_id": f"c{number}"}
                call |= {"tool_name": "read_file", "tool_input": {"path": f"/srv/data/{number}", "note": "x" * 300}}
                flag = "01" if sampled and number % sampled == 0 else "00"
                headers = [("traceparent", TRACEPARENT.format(number + 1, number + 1, flag))]
                producer.produce("agent.events", json.dumps(call), key=thread, headers=headers)
                # The embedded broker holds only so much; so the producer stays just ahead of the worker.
                if number % 1000 == 999:
                    producer.flush()
            deadline = time.monotonic() + 120
            while metrics(found["metrics"])[0] < EVENTS:
                assert time.monotonic() < deadline, "verdicts are missing"
                time.sleep(0.5)
            time.sleep(2.5)
            cpu = cpu_seconds(worker) - cpu_before
            _, exported, dropped = (after - start for after, start in zip(metrics(found["metrics"]), before))
            return cpu / EVENTS * 1e6, int(exported), int(dropped)
        finally:
            worker.terminate()
            worker.wait()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
results = {}
for _ in range(ROUNDS):
    for mode in ["off", "1 %", "100 %"]:
        results.setdefault(mode, []).append(run(mode, f"http://127.0.0.1:{server.server_port}/v1/traces"))
for mode, runs in results.items():
    costs = sorted(cost for cost, *_ in runs)
    middle, exported, dropped = costs[len(costs) // 2], [run[1] for run in runs], [run[2] for run in runs]
    print(f"{mode:>6}: {middle:6.1f} us CPU an event ({costs[0]:.1f} to {costs[-1]:.1f}), exported {exported}, dropped {dropped}")

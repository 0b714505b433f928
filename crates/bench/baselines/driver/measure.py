"""Events per CPU second of every system, draining the same preloaded topic.

CPU is user and system time of the process with all of its threads, while it decides on the second half of
the topic: by then a JVM is warm and everybody is connected. The systems run in turn, in several rounds, so that a machine that
gets slower gets slower for all; of the rounds the median counts.
"""

import argparse
import json
import statistics
import time

from broker import Broker
from systems import Cluster, System
from traffic import Generator

PARTITIONS = 6
THREADS = 2_000


def drain(system, verdicts):
    """CPU microseconds and seconds for each verdict of the measured part."""
    system.start()
    first = system.wait_for(verdicts // 2, interval=0.005)
    cpu, started = system.cpu_seconds(), time.monotonic()
    last = system.wait_for(verdicts * 98 // 100, interval=0.005)
    cpu, seconds = system.cpu_seconds() - cpu, time.monotonic() - started
    system.stop()
    return {"system": system.name, "cpu_us": cpu * 1e6 / (last - first), "per_second": (last - first) / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=("mix", "small"), default="mix")
    parser.add_argument("--systems", default="bare,tollgate,python,kafka-streams")
    options = parser.parse_args()
    with Broker() as broker:
        cluster = Cluster(broker.address)
        topic = cluster.topic("events", PARTITIONS)
        sizes, boundaries = [], [0]

        def events():
            for thread, value in Generator(options.seed, THREADS, options.profile).events(options.events):
                sizes.append(len(value))
                boundaries[0] += value.startswith((b'{"type":"turn_start"', b'{"type":"turn_end"'))
                yield thread, value

        cluster.produce(topic, events())
        verdicts = len(sizes) - boundaries[0]
        print(f"{len(sizes)} events of {sum(sizes) // len(sizes)} bytes on average, {verdicts} verdicts", flush=True)
        results = {name: [] for name in options.systems.split(",")}
        for round_number in range(options.rounds):
            for name, rounds in results.items():
                system = System(name, cluster, topic, PARTITIONS)
                try:
                    # The bare loop knows no turn boundaries.
                    rounds.append(drain(system, len(sizes) if name == "bare" else verdicts))
                finally:
                    system.remove()
                print(f"round {round_number + 1}: {json.dumps(rounds[-1])}", flush=True)
    cost = {name: [one["cpu_us"] * (1 if name == "bare" else verdicts / len(sizes)) for one in rounds] for name, rounds in results.items()}
    reference = statistics.median(cost["tollgate"]) if "tollgate" in cost else None
    print(f"{'system':<14} {'CPU µs/event':>13} {'events/CPU s':>13} {'spread':>15} {'tollgate is':>12}")
    for name, values in cost.items():
        middle = statistics.median(values)
        ratio = f"{middle / reference:.2f} ×" if reference else ""
        print(f"{name:<14} {middle:>13.2f} {1e6 / middle:>13.0f} {min(values):>7.2f}–{max(values):<7.2f} {ratio:>12}")


if __name__ == "__main__":
    main()

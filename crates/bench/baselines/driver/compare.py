"""The same events through every system, and where their verdicts differ from those of `tollgate eval`.

Compared is, for every thread in order, what was decided on each event: its id, action and code.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

from broker import Broker
from systems import Cluster, System, tollgate
from traffic import DENIED, Generator

PARTITIONS = 6
EVAL_YAML = "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [%s]}}}\n"


def verdict_of(value):
    verdict = json.loads(value)
    return verdict["thread_id"], (verdict["event_id"], verdict["action"], verdict["code"])


def by_thread(values):
    threads = defaultdict(list)
    for value in values:
        thread, verdict = verdict_of(value)
        threads[thread].append(verdict)
    return threads


def evaluate(events):
    """What `tollgate eval` decides."""
    with tempfile.TemporaryDirectory() as folder:
        config, lines = f"{folder}/tollgate.yaml", f"{folder}/events.jsonl"
        with open(config, "w") as file:
            file.write(EVAL_YAML % ", ".join(DENIED))
        with open(lines, "wb") as file:
            file.writelines(value + b"\n" for _, value in events)
        answer = subprocess.run([tollgate(), "--config", config, "eval", lines], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if answer.returncode not in (0, 3):
        raise RuntimeError(f"tollgate eval: exit code {answer.returncode}")
    return answer.stdout.splitlines()


def disagreements(expected, found):
    """Pairs of (action, code) that differ, counted, with an event of each."""
    kinds, samples = Counter(), {}
    for thread in expected.keys() | found.keys():
        ours, theirs = expected.get(thread, []), found.get(thread, [])
        if len(ours) != len(theirs):
            kinds["a thread with another number of verdicts"] += 1
            samples["a thread with another number of verdicts"] = thread
        for one, other in zip(ours, theirs):
            if one != other:
                kind = f"{'/'.join(one[1:])} here, {'/'.join(other[1:])} there" if one[0] == other[0] else "another order"
                kinds[kind] += 1
                samples.setdefault(kind, one[0])
    return [(count, kind, samples[kind]) for kind, count in kinds.most_common()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=("trouble", "mix"), default="trouble")
    parser.add_argument("--systems", default="tollgate,python,kafka-streams")
    options = parser.parse_args()
    events = list(Generator(options.seed, 100, options.profile).events(options.events))
    verdicts = evaluate(events)
    expected = by_thread(verdicts)
    mix = Counter("/".join(verdict[1:]) for thread in expected.values() for verdict in thread)
    print(f"{len(events)} events, {len(verdicts)} verdicts (seed {options.seed})")
    for kind, count in mix.most_common():
        print(f"  {count:>7} {kind}")
    is_equal = True
    with Broker() as broker:
        cluster = Cluster(broker.address)
        topic = cluster.topic("events", PARTITIONS)
        cluster.produce(topic, events)
        for name in options.systems.split(","):
            system = System(name, cluster, topic, PARTITIONS).start()
            try:
                system.wait_for(len(verdicts), interval=0.2)
                system.stop()
                found = by_thread(value for _, value in cluster.read(system.decisions, PARTITIONS))
            finally:
                system.remove()
            differences = disagreements(expected, found)
            print(f"{name}: {'equal' if not differences else 'different'}")
            for count, kind, sample in differences:
                print(f"  {count:>7} {kind} (such as {sample})")
            is_equal &= not differences
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()

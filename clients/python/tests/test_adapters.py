"""Runs the cases of all adapters in each host that is installed."""

import importlib
import json
import pathlib

import pytest
from fake_gate import allowed, blocked
from hosts import DRIVERS, Run

from tollgate._adapter import Asker


def load(name):
    return importlib.import_module(f"hosts.{name}")


CASES = json.loads((pathlib.Path(__file__).resolve().parents[2] / "conformance/adapters.json").read_text())


def lacks(host, case):
    """Returns whether a host has no such event; a host that lacks an event says so in its first words."""
    return case.get("needs") in host.LACKS and case["needs"] in host.__doc__


PAIRS = [(host, case) for host in map(load, DRIVERS) for case in CASES if not lacks(host, case)]


def decide_as(case):
    """Returns how the gate decides in a case."""

    def decide(event):
        if event["type"] == "tool_call" and value_of(event) in case.get("blocked", ()):
            return blocked(event)
        return allowed(event, **case.get("gate", {}).get(event["type"], {}))

    return decide


def value_of(call):
    given = call["tool_input"] if "tool_input" in call else json.loads(call["arguments"])
    return given["value"]


def fail_as(fake, case):
    """Returns how the gate answers in a case whose gate fails for events of one type."""

    def answer(events):
        if events[0]["type"] != case["fault_of"]:
            return fake.usual(events[0], events)
        if case["fault"] == "silent":
            fake.released.wait()
        return (200, {}, "<html>") if case["fault"] == "garbage" else None

    return answer


@pytest.mark.parametrize(("host", "case"), PAIRS, ids=[f"{host.__name__.split('.')[1]}: {case['name']}" for host, case in PAIRS])
def test_case(fake, host, case, monkeypatch):
    fake.decide = decide_as(case)
    if case.get("fault") == "refused":
        fake.server.server_close()
    elif case.get("fault") == "raises":
        monkeypatch.setattr(host.BREAKS, broken)
    elif "fault" in case:
        fake.answer = fail_as(fake, case)
    settings = {
        "url": fake.url,
        "deadline": 1.5 if case.get("fault") in ("silent", "cut") else 20.0,
        "on_failure": case.get("on_failure", "closed"),
    }
    askers = made_from_now(monkeypatch)
    seen = host.converse_with(Run(settings, case.get("calls", [{"id": "c1", "value": 3}])))
    check(case["expect"], seen, fake, host)
    if "counted" in case["expect"]:
        assert sum(asker.counts.get(case["expect"]["counted"], 0) for asker in askers) > 0


def made_from_now(monkeypatch):
    """Returns the list of the askers that a run makes, of which the host shows none."""
    askers, make = [], Asker.__init__

    def made(asker, *given, **settings):
        askers.append(asker)
        make(asker, *given, **settings)

    monkeypatch.setattr(Asker, "__init__", made)
    return askers


def broken(*_, **__):
    raise KeyError("secret")


def check(expect, seen, fake, host):
    # The gate refuses another event under the same id.
    named = {}
    assert all(named.setdefault(event["event_id"], event) == event for event in fake.events)
    assert sorted(seen.ran) == expect["ran"] and "secret" not in str(seen)
    for name in ("replies", "text"):
        if name in expect:
            assert getattr(seen, name) == expect[name]
    assert expect.get("says", "") in seen.text
    for ident, texts in expect.get("read", {}).items():
        assert all(text in seen.read[ident] for text in texts)
    if "asked" in expect:
        kinds = [event["type"] for event in fake.events if not event["type"].startswith("turn_")]
        assert kinds == [kind for kind in expect["asked"] if kind not in host.LACKS]
        assert {event["thread_id"] for event in fake.events} == {seen.thread} and len({event["turn_id"] for event in fake.events}) == 1

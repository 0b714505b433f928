"""Runs the conformance cases through both faces, over HTTP and over Kafka."""

import asyncio
import json
import pathlib

import pytest
from fake_kafka import QUICK, REPLIES

from tollgate import AsyncGate, Gate
from tollgate.kafka import Kafka

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "conformance"
IDS = json.loads((FOLDER / "ids.json").read_text())
CASES = [case for name in ("verdicts", "faults") for case in json.loads((FOLDER / f"{name}.json").read_text())]


def answers_of(case):
    return case["answers"] if "answers" in case else [case["answer"]]


def speaks_kafka(case):
    """Returns whether a case is one of those that are no matter of HTTP."""
    return all(answer.get("status") == 200 or answer.get("fault") in ("refused", "silent") for answer in answers_of(case))


KAFKA_CASES = [case for case in CASES if speaks_kafka(case)]


def text_of(answer, events):
    return answer["text"] if "text" in answer else json.dumps(answer["body"]).replace("{event_id}", events[0]["event_id"])


def in_turn(answers):
    """Returns a function that gives the answers one by one, and the last one from then on."""
    left = list(answers)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def over_http(fake, answers):
    following = in_turn(answers)

    def respond(events):
        answer = following()
        if answer.get("fault") == "silent":
            fake.released.wait()
        if "fault" in answer:
            return None
        return answer["status"], answer.get("headers", {}), text_of(answer, events)

    return respond


def over_kafka(answers):
    following = in_turn(answers)

    def respond(events):
        answer = following()
        return [] if "fault" in answer else [text_of(answer, events).encode()]

    return respond


def asked(gate, call):
    names = {"thread_id": "thread", "arguments": "tool_input"}
    given = {names.get(name, name): value for name, value in call.items() if name != "method"}
    return getattr(gate, call["method"])(**given)


def ask(face, settings, *calls):
    if face == "sync":
        with Gate(**settings) as gate:
            return [asked(gate, call) for call in calls]

    async def ask_on_loop():
        async with AsyncGate(**settings) as gate:
            return [await asked(gate, call) for call in calls]

    return asyncio.run(ask_on_loop())


def check(case, face, settings, fake):
    (verdict,) = ask(face, {**settings, "on_failure": case.get("on_failure", "closed")}, case["call"])
    assert {name: getattr(verdict, name) for name in case["expect"]} == case["expect"], verdict.message
    if "sent" in case:
        assert fake.events == ([case["sent"]] if case["sent"] else [])
    assert "ls" not in verdict.message.split()


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_over_http(fake, case, face):
    answers = answers_of(case)
    fake.answer = over_http(fake, answers)
    fault = answers[0].get("fault")
    if fault == "refused":
        fake.server.server_close()
    check(case, face, {"url": fake.url, "deadline": 0.3 if fault == "silent" else 2.0}, fake)


@pytest.mark.parametrize("reply_topic", [REPLIES, None], ids=["replies", "decisions"])
@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("case", KAFKA_CASES, ids=lambda case: case["name"])
def test_case_over_kafka(fake_kafka, case, face, reply_topic):
    answers = answers_of(case)
    fake_kafka.answer = over_kafka(answers)
    fault = answers[0].get("fault")
    kafka = Kafka("127.0.0.1:1" if fault == "refused" else fake_kafka.brokers, reply_topic=reply_topic, properties=QUICK)
    check(case, face, {"kafka": kafka, "deadline": 0.5 if fault else 10.0}, fake_kafka)


def check_ids(case, face, settings):
    verdicts = ask(face, settings, *case["calls"])
    assert [(verdict.code, verdict.event_id) for verdict in verdicts] == [("allow", ident) for ident in case["decided"]]


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("case", IDS, ids=lambda case: case["name"])
def test_ids_over_http(fake, case, face):
    fake.answer = fake.knows_ids
    check_ids(case, face, {"url": fake.url, "deadline": 10.0})
    assert {event["event_id"] for event in fake.events} == set(case["decided"])


@pytest.mark.parametrize("reply_topic", [REPLIES, None], ids=["replies", "decisions"])
@pytest.mark.parametrize("case", IDS, ids=lambda case: case["name"])
def test_ids_over_kafka(fake_kafka, case, reply_topic):
    check_ids(case, "sync", {"kafka": Kafka(fake_kafka.brokers, reply_topic=reply_topic, properties=QUICK), "deadline": 10.0})
    assert [event["event_id"] for event in fake_kafka.events] == case["decided"]


def test_there_are_cases_for_both():
    assert len(IDS) >= 12 and len(CASES) >= 30 and len(KAFKA_CASES) >= 15

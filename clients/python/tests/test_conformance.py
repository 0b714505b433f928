"""Runs the conformance cases through both faces."""

import asyncio
import json
import pathlib

import pytest

from tollgate import AsyncGate, Gate

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "conformance"
CASES = [case for name in ("verdicts", "faults") for case in json.loads((FOLDER / f"{name}.json").read_text())]


def answering(fake, answer):
    def respond(events):
        if answer.get("fault") == "silent":
            fake.released.wait()
        if "fault" in answer:
            return None
        text = answer["text"] if "text" in answer else json.dumps(answer["body"]).replace("{event_id}", events[0]["event_id"])
        return answer["status"], answer.get("headers", {}), text

    return respond


def ask(face, settings, call):
    method = call.pop("method")
    if face == "sync":
        with Gate(**settings) as gate:
            return getattr(gate, method)(**call)

    async def ask_on_loop():
        async with AsyncGate(**settings) as gate:
            return await getattr(gate, method)(**call)

    return asyncio.run(ask_on_loop())


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(fake, case, face):
    fake.answer = answering(fake, case["answer"])
    fault = case["answer"].get("fault")
    if fault == "refused":
        fake.server.server_close()
    call = {"thread" if name == "thread_id" else name: value for name, value in case["call"].items()}
    settings = {"url": fake.url, "deadline": 0.3 if fault == "silent" else 2.0, "on_failure": case.get("on_failure", "closed")}
    verdict = ask(face, settings, call)
    assert {name: getattr(verdict, name) for name in case["expect"]} == case["expect"]
    if "sent" in case:
        assert fake.events == ([case["sent"]] if case["sent"] else [])
    assert "ls" not in verdict.message.split()

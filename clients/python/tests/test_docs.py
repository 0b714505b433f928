"""Runs the snippets of the quickstart page."""

import pathlib
import re

from fake_gate import allowed, blocked
from langchain_core.messages import AIMessage
from test_langchain import Model, call

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python.md"
LANGCHAIN, LOOP = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_fits_a_screen():
    assert len(PAGE.read_text().splitlines()) <= 60


def test_langchain_shows_why_a_call_is_blocked(fake, monkeypatch, capsys):
    monkeypatch.setenv("TOLLGATE_URL", fake.url)
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event)
    model = Model(messages=iter([AIMessage("", tool_calls=[call("bash")]), AIMessage("done")]))

    def bash() -> str:
        """Runs a command."""
        raise AssertionError("a blocked tool ran")

    exec(LANGCHAIN, {"model": model, "tools": [bash]})
    assert capsys.readouterr().out == "blocked: tool_denied\n"


def test_a_loop_tells_of_an_allowed_call(fake, monkeypatch, capsys):
    monkeypatch.setenv("TOLLGATE_URL", fake.url)
    fake.decide = lambda event: allowed(event, **({"guidance": "Careful."} if event["type"] == "tool_result" else {}))
    exec(LOOP, {})
    assert capsys.readouterr().out == "Careful.\n"
    assert [event["type"] for event in fake.events] == ["turn_start", "tool_call", "tool_result", "turn_end"]


def test_a_loop_shows_why_a_call_is_blocked(fake, monkeypatch, capsys):
    monkeypatch.setenv("TOLLGATE_URL", fake.url)
    fake.decide = blocked
    exec(LOOP, {})
    assert capsys.readouterr().out == "blocked: tool_denied\n"

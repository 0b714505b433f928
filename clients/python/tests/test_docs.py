"""Runs the snippets of the quickstart page, each with a gate that blocks calls."""

import importlib
import pathlib
import re

import pytest
from fake_gate import allowed, blocked
from hosts import CHAPTERS, HERE

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python.md"
SCREEN_LINES = 60
TEXTS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE))


def code(chapter, language):
    return re.search(rf"```{language}\n(.*?)```", TEXTS[chapter], re.DOTALL)[1]


def snippet(chapter):
    return code(chapter, "python")


@pytest.fixture(autouse=True)
def address(fake, monkeypatch):
    monkeypatch.setenv("TOLLGATE_URL", fake.url)


def test_every_chapter_fits_a_screen_and_has_its_test():
    assert max(len(text.splitlines()) for text in TEXTS.values()) <= SCREEN_LINES
    assert set(TEXTS) == {*CHAPTERS, "A loop of your own", "Over Kafka"}


@pytest.mark.parametrize("chapter", [chapter for chapter, host in CHAPTERS.items() if host in HERE and "```python" in TEXTS[chapter]])
def test_a_framework_shows_why_a_call_is_blocked(fake, capsys, monkeypatch, chapter):
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event)
    ran = []
    exec(snippet(chapter), importlib.import_module(f"hosts.{CHAPTERS[chapter]}").names_of_snippet(ran, monkeypatch))
    assert "blocked: tool_denied" in capsys.readouterr().out and ran == []
    assert len(fake.of_type("tool_call")) == 1


def test_a_loop_tells_of_an_allowed_call(fake, capsys):
    fake.decide = lambda event: allowed(event, **({"guidance": "Careful."} if event["type"] == "tool_result" else {}))
    exec(snippet("A loop of your own"), {})
    assert capsys.readouterr().out == "Careful.\n"
    assert [event["type"] for event in fake.events] == ["turn_start", "tool_call", "tool_result", "turn_end"]


def test_a_loop_shows_why_a_call_is_blocked(fake, capsys):
    fake.decide = blocked
    exec(snippet("A loop of your own"), {})
    assert capsys.readouterr().out == "blocked: tool_denied\n"

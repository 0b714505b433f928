"""Hosts: each runs a short conversation of a fake model in a real framework behind the gate, so that all run the same cases."""

import os
from dataclasses import dataclass, field

CHAPTERS = {
    "LangChain": "langchain",
    "OpenAI Agents SDK": "openai_agents",
    "Claude Agent SDK": "claude_agent",
    "Pydantic AI": "pydantic_ai",
    "Google ADK": "google_adk",
    "CrewAI": "crewai",
    "DeerFlow": "deerflow",
    "Hermes": "hermes",
}
"""The drivers, by the chapters of the page."""
APART = ("crewai", "hermes")
"""Hosts whose dependencies contradict those of the others: each has an environment of its own, which names it in TOLLGATE_TEST_HOST. So has
DeerFlow's factory; DeerFlow's middleware runs in LangChain's agents too."""
ALONE = os.environ.get("TOLLGATE_TEST_HOST")
HERE = [ALONE] if ALONE else [host for host in CHAPTERS.values() if host not in APART]
"""The hosts of this environment."""
OF_ALONE = {"hermes": ["hermes", "hermes_messages", "hermes_responses"], "deerflow": ["deerflow_factory"]}
DRIVERS = OF_ALONE.get(ALONE, HERE)
"""The drivers that run the cases: a host that reads providers in several ways has one for each."""


@dataclass
class Seen:
    """What came of a run: the values that the tool worked on, what the model read of each call, the last text, and the thread's id."""

    ran: list = field(default_factory=list)
    read: dict = field(default_factory=dict)
    replies: int = 0
    text: str = ""
    thread: str = "t"


@dataclass
class Run:
    """A run to make: the gate's address and settings, the calls of the model's first response, and the thread."""

    settings: dict
    calls: list
    thread: str = "t"
    turn: str = "u"

    def script(self, asking, *answers):
        """Returns the model's responses in order: the one that asks for the calls, if there are calls, and its answers."""
        return [asking, *answers] if self.calls else list(answers)

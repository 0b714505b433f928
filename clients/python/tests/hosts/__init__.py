"""Hosts: each runs a short conversation of a fake model in a real framework behind the gate, so that all run the same cases."""

from dataclasses import dataclass, field


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

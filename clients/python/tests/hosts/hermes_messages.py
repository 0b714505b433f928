"""Hermes with its own agent, whose provider speaks the Messages API."""

from functools import partial

from hosts import hermes
from hosts.hermes import BREAKS, LACKS

__all__ = ["BREAKS", "LACKS", "converse_with"]
converse_with = partial(hermes.converse_with, api="anthropic_messages")

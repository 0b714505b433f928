"""Where calls and texts stand in responses. The rows repeat the tables of `crates/core/src/decide/safety/reading/readers`.

A path has members joined by dots; `[]` stands for every item of a list, `[-1]` for the last item. A member with dots of its own is quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Step = str | Literal[0, -1]
"""A member's name, 0 for every item of a list, or -1 for the last item."""


def steps(path: str) -> tuple[Step, ...]:
    """Returns the steps of a path."""
    found: list[Step] = []
    for quoted, name, item in re.findall(r'"([^"]+)"|([^.\[\]"]+)|(\[-?1?\])', path):
        found.append((-1 if item == "[-1]" else 0) if item else quoted or name)
    return tuple(found)


@dataclass(frozen=True)
class Calls:
    """A place of calls: the path, the types that count (all if empty), the member that holds the type, and the paths of an id."""

    path: tuple[Step, ...]
    types: frozenset[str] = frozenset()
    type_member: str = "type"
    ids: tuple[str, ...] = ("id",)


def _at(path: str, *ids: str, types: tuple[str, ...] = (), type_member: str = "type") -> Calls:
    return Calls(steps(path), frozenset(types), type_member, ids)


BLOCKS = ("tool_use", "tool_call", "invalid_tool_call", "function_call", "custom_tool_call", "tool-call")
ITEMS = ("function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "computer_call")
PARTS = ("tool-input-start", "tool-input-available", "tool-call")


def _blocks(path: str) -> Calls:
    return _at(path, "call_id", "toolCallId", "id", types=BLOCKS)


RESPONSE_CALLS = (
    _at("choices[].message.tool_calls[]", "id"),
    _at("choices[].delta.tool_calls[]", "id"),
    _at("choices[].message.function_call"),
    _at("choices[].delta.function_call"),
    _blocks("choices[].message.content[]"),
    _at("output[]", "call_id", "id", types=ITEMS),
    _at("item", "call_id", "id", types=ITEMS),
    _blocks("content[]"),
    _blocks("content_block"),
    _at("candidates[].content.parts[].functionCall", "id"),
    _at("candidates[].content.parts[].function_call", "id"),
    _at("toolCall.functionCalls[]", "id"),
    _at("tool_call.function_calls[]", "id"),
    _blocks("steps[]"),
    _blocks("outputs[]"),
    _blocks("delta"),
    _at("output.message.content[].toolUse", "toolUseId"),
    _at("contentBlockStart.start.toolUse", "toolUseId"),
    _at("delta.message.tool_calls", "id"),
    _at("tool_calls[]", "id"),
    _at("function_call"),
    _at("output.choices[].message.tool_calls[]", "id"),
    _at("Choices[].Message.ToolCalls[]", "Id"),
    _at("Choices[].Delta.ToolCalls[]", "Id"),
    _at("payload.choices.text[].function_call"),
    _at("outputs[].message.tool_calls[]", "id"),
    _at("outputs[].delta.tool_calls[]", "id"),
    _at("toolCalls[]", "toolCallId", "id"),
    _blocks("steps[].content[]"),
    _at("", "toolCallId", "id", types=PARTS),
    _at("parts[]", "tool_call_id", types=("tool-call",), type_member="part_kind"),
    _at('attributes."gen_ai.output.messages"[].parts[]', "id", types=("tool_call",)),
    _at('"gen_ai.output.messages"[].parts[]', "id", types=("tool_call",)),
)
RESPONSE_WRAPPERS = tuple(steps(path) for path in ("response.body", "response", "result.message", "message", "interaction", "Response"))

MESSAGE_CALLS = (
    _at("tool_calls[]", "id"),
    _at("invalid_tool_calls[]", "id"),
    _at("tool_call_chunks[]", "id"),
    _at("additional_kwargs.tool_calls[]", "id"),
    _at("additional_kwargs.function_call"),
    _blocks("content[]"),
    _at("response_metadata.tool_calls[]", "id"),
    _at("response_metadata.function_call"),
    _at("response_metadata.message.tool_calls[]", "id"),
)
MESSAGE_WRAPPERS = tuple(steps(path) for path in ("kwargs", "data", "messages[-1]", "generations[][].message"))

Block = Literal["typed", "part", "item"]
"""What a text is in a list: `{"type": "text", …}`, `{"text": …}`, or a message of the Responses API."""

TEXTS: tuple[tuple[tuple[Step, ...], str, Block], ...] = (
    (steps("choices[].message"), "content", "typed"),
    (steps("output.choices[].message"), "content", "typed"),
    (steps("outputs[].message"), "content", "typed"),
    (steps("Choices[].Message"), "Content", "typed"),
    (steps("candidates[].content"), "parts", "part"),
    (steps("output.message"), "content", "part"),
    (steps("message"), "content", "typed"),
)
TOP_TEXTS: tuple[tuple[str, Block], ...] = (("output", "item"), ("content", "typed"), ("text", "typed"), ("result", "typed"))
RECORDED = ("detector", "reason_field", "reason_value", "suppressed_tool_call_count", "suppressed_tool_call_names", "extras")

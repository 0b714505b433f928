"""Writes what the current SDKs serialise, as JSON lines: models of providers and the records of CloudEvents.

    python3 -m venv target/sdk-venv && target/sdk-venv/bin/pip install -r tests/sdk/requirements.txt
    target/sdk-venv/bin/python tests/sdk/record.py > crates/core/tests/fixtures/sdk_objects.jsonl

Every object is made by the SDK's own classes out of what its server sends, and written as the SDK writes it. The test `sdk_objects` of
`crates/core` reads the lines, so that it needs no SDK.
"""

import io
import json
import sys
from datetime import datetime, timezone
from importlib.metadata import version

SAFETY = "openai_compatible_content_filter"
CALL = {"id": "call_1", "type": "function", "function": {"name": "shell", "arguments": '{"cmd":"l'}}


def line(package, name, field, body, expect=None, tools=()):
    """Prints one object: the SDK, the field of an event that holds the object, and what is read in it."""
    out = {"sdk": f"{package} {version(package)}", "id": f"{package}: {name}", "as": field, "body": body, "tools": list(tools)}
    if expect:
        out["expect"] = dict(zip(("category", "detector", "stage", "reason_field", "reason_value"), expect))
    print(json.dumps(out, ensure_ascii=False, default=str, separators=(",", ":")))


def openai():
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.responses import Response

    def chat(reason):
        message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        choices = [{"index": 0, "finish_reason": reason, "message": message}]
        return ChatCompletion.model_validate({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})

    stop = ("safety", SAFETY, "output", "finish_reason", "content_filter")
    line("openai", "chat, model_dump", "response", chat("content_filter").model_dump(), stop, ["shell"])
    line("openai", "chat, to_json", "response", json.loads(chat("content_filter").to_json()), stop, ["shell"])
    line("openai", "chat, tool calls", "response", chat("tool_calls").model_dump(mode="json"), None, ["shell"])
    deltas = [({"tool_calls": [{"index": 0, **CALL}]}, None), ({}, "content_filter")]
    chunks = [
        ChatCompletionChunk.model_validate(
            {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        ).model_dump(mode="json")
        for delta, reason in deltas
    ]
    line("openai", "chunks of a chat", "response", chunks, stop, ["shell"])
    call = {"type": "function_call", "call_id": "call_2", "id": "fc_2", "name": "shell", "arguments": "{", "status": "incomplete"}
    response = Response.model_validate(
        {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "incomplete", "output": [call], "tools": [],
         "parallel_tool_calls": True, "tool_choice": "auto", "incomplete_details": {"reason": "content_filter"}}
    )
    expect = ("safety", "openai_responses_incomplete", "output", "incomplete_details.reason", "content_filter")
    line("openai", "response", "response", response.model_dump(mode="json"), expect, ["shell"])


def anthropic():
    from anthropic.types import Message

    def message(reason):
        content = [{"type": "text", "text": "I"}, {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"stop_reason": "refusal"}}]
        return Message.model_validate(
            {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
             "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2}}
        )

    expect = ("refusal", "anthropic_refusal", "output", "stop_reason", "refusal")
    line("anthropic", "message, model_dump", "response", message("refusal").model_dump(mode="json"), expect, ["shell"])
    line("anthropic", "message, to_json", "response", json.loads(message("refusal").to_json()), expect, ["shell"])
    line("anthropic", "message, tool use", "response", message("tool_use").model_dump(mode="json"), None, ["shell"])


def google():
    from google.genai import types

    def body(reason):
        parts = [{"functionCall": {"name": "shell", "args": {"finishReason": "SAFETY"}}}]
        return types.GenerateContentResponse.model_validate(
            {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}], "modelVersion": "m"}
        )

    for name, dump in (
        ("model_dump", lambda model: model.model_dump(mode="json")),
        ("model_dump of Python, printed", lambda model: json.loads(json.dumps(model.model_dump(), default=str))),
        ("by alias", lambda model: json.loads(model.model_dump_json(by_alias=True, exclude_none=True))),
    ):
        shown = dump(body("SAFETY"))
        field = "finishReason" if "finishReason" in shown["candidates"][0] else "finish_reason"
        value = shown["candidates"][0][field]
        line("google-genai", name, "response", shown, ("safety", "gemini_safety", "output", field, value), ["shell"])
        line("google-genai", f"{name}, tool call", "response", dump(body("STOP")), None, ["shell"])
    blocked = types.GenerateContentResponse.model_validate({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    expect = ("prohibited", "gemini_prompt_feedback", "input", "prompt_feedback.block_reason", "PROHIBITED_CONTENT")
    line("google-genai", "blocked prompt", "response", blocked.model_dump(mode="json"), expect)
    live = types.LiveServerMessage.model_validate({"toolCall": {"functionCalls": [{"id": "f", "name": "shell", "args": {}}]}})
    line("google-genai", "tool call of a live session", "response", live.model_dump(mode="json"), None, ["shell"])


def langchain():
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, AIMessageChunk, message_to_dict

    def message(reason):
        return AIMessage(content="I", response_metadata={"finish_reason": reason}, tool_calls=[{"name": "shell", "args": {}, "id": "call_1"}])

    stop = ("safety", SAFETY, "output", "finish_reason", "content_filter")
    for name, dump in (("message_to_dict", message_to_dict), ("dumpd", dumpd), ("model_dump", lambda message: message.model_dump(mode="json"))):
        line("langchain-core", name, "message", dump(message("content_filter")), stop, ["shell"])
        line("langchain-core", f"{name}, tool calls", "message", dump(message("tool_calls")), None, ["shell"])
    invalid = AIMessage(
        content="",
        response_metadata={"stop_reason": "refusal"},
        invalid_tool_calls=[{"name": "shell", "args": '{"c', "id": "call_2", "error": "cut", "type": "invalid_tool_call"}],
    )
    expect = ("refusal", "anthropic_refusal", "output", "stop_reason", "refusal")
    line("langchain-core", "invalid tool calls", "message", message_to_dict(invalid), expect, ["shell"])
    first = {"name": "shell", "args": '{"c', "id": "call_3", "index": 0, "type": "tool_call_chunk"}
    rest = {"name": None, "args": 'md":', "id": None, "index": 0, "type": "tool_call_chunk"}
    merged = AIMessageChunk(content="", tool_call_chunks=[first]) + AIMessageChunk(
        content="", tool_call_chunks=[rest], response_metadata={"finish_reason": "content_filter"}
    )
    line("langchain-core", "merged chunks", "message", message_to_dict(merged), stop, ["shell"])
    twice = AIMessageChunk(content="", response_metadata={"finish_reason": "content_filter"})
    repeated = ("safety", SAFETY, "output", "finish_reason", "content_filtercontent_filter")
    line("langchain-core", "a reason that merging repeats", "message", message_to_dict(twice + twice), repeated)


def mistral():
    from mistralai.client.models import ChatCompletionResponse

    def body(reason):
        message = {"role": "assistant", "content": "", "tool_calls": [{"id": "a1b2c3d4e", "function": {"name": "shell", "arguments": "{}"}}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choices = [{"index": 0, "finish_reason": reason, "message": message}]
        return ChatCompletionResponse.model_validate(
            {"id": "m", "object": "chat.completion", "model": "m", "created": 1, "usage": usage, "choices": choices}
        ).model_dump(mode="json")

    line("mistralai", "chat, tool calls", "response", body("tool_calls"), None, ["shell"])
    line("mistralai", "chat, filtered", "response", body("content_filter"), ("safety", SAFETY, "output", "finish_reason", "content_filter"), ["shell"])


def cohere():
    from cohere import NonStreamedChatResponse, V2ChatResponse

    v1 = NonStreamedChatResponse.model_validate(
        {"text": "", "finish_reason": "ERROR_TOXIC", "tool_calls": [{"name": "shell", "parameters": {"a": 1}}]}
    )
    line("cohere", "v1", "response", json.loads(v1.model_dump_json()), ("safety", "cohere_toxic", "output", "finish_reason", "ERROR_TOXIC"), ["shell"])
    v2 = V2ChatResponse.model_validate(
        {"id": "c", "finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [CALL]}}
    )
    line("cohere", "v2", "response", json.loads(v2.model_dump_json()), None, ["shell"])


def bedrock():
    import botocore.session
    from botocore.parsers import create_parser

    model = botocore.session.get_session().get_service_model("bedrock-runtime")

    def converse(reason):
        call = {"toolUse": {"toolUseId": "tooluse_1", "name": "shell", "input": {"stopReason": "guardrail_intervened"}}}
        wire = {"output": {"message": {"role": "assistant", "content": [call]}}, "stopReason": reason, "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}
        response = {"status_code": 200, "headers": {}, "body": json.dumps(wire).encode()}
        return create_parser("rest-json").parse(response, model.operation_model("Converse").output_shape)

    expect = ("guardrail", "bedrock_stop_reason", "output", "stopReason", "guardrail_intervened")
    line("botocore", "Converse, stopped", "response", converse("guardrail_intervened"), expect, ["shell"])
    line("botocore", "Converse, tool use", "response", converse("tool_use"), None, ["shell"])


def cloudevents():
    from cloudevents.core.bindings import kafka as new
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent as NewEvent
    from cloudevents.v1 import kafka as old
    from cloudevents.v1.http import CloudEvent as OldEvent

    data = {"tool_call_id": "call_1", "tool_name": "shell", "tool_input": {"cmd": "ls"}}
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    attributes = {"id": "e1", "source": "/agents", "type": "com.acme.agent.tool_call", "subject": "t1", "datacontenttype": "application/json"}

    def record(name, message):
        text = lambda value: value.decode() if isinstance(value, bytes) else value
        headers = {key: text(value) for key, value in message.headers.items()}
        line("cloudevents", name, "record", {"headers": headers, "value": text(message.value)})

    record("old API, structured", old.to_structured(OldEvent({**attributes, "time": time.isoformat()}, data)))
    record("old API, binary", old.to_binary(OldEvent({**attributes, "time": time.isoformat()}, data)))
    for name, write in (("structured", new.to_structured), ("binary", new.to_binary)):
        record(f"new API, {name}", write(NewEvent({**attributes, "specversion": "1.0", "time": time}, data), JSONFormat()))
    encoded = json.dumps(data).encode()
    record("new API, structured with bytes", new.to_structured(NewEvent({**attributes, "specversion": "1.0", "time": time}, encoded), JSONFormat()))


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
    for sdk in (openai, anthropic, google, langchain, mistral, cohere, bedrock, cloudevents):
        sdk()

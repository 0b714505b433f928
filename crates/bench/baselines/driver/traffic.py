"""Events to send through every system: seeded, so that the same seed gives the same bytes.

Three profiles. `mix` is what a fleet does, in realistic sizes: model responses of 3 to 8 KB with tool calls, calls of 200 bytes
to 4 KB, results of 200 bytes to 16 KB, Zipf over threads; about 5 % loops, 1 % safety stops and 1 % denials. `small` is calls and
results of some 600 bytes alone. `trouble` is for equality: small events, and as much as possible of what the rules tell apart.
"""

import json
import random
import sys
from bisect import bisect

DENIED = ("format_disk", "shutdown_host")
READING = ("read_file", "search_files", "web_search", "mcp_filesystem_read_file")
WRITING = ("terminal", "write_file", "patch", "memory", "execute_code", "custom_tool")
WORDS = (
    "cart total discount is applied before the tax so that the order of items changes what the customer pays while the test"
    " expects rounding to the nearest cent after every line and the fixture holds three prices of which one is zero"
).split()
TIMESTAMP = "2026-01-01T00:00:00.000Z"


def spelled(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Generator:
    """Events of many threads, interleaved. Each thread is a script that yields its next event."""

    def __init__(self, seed, threads, profile):
        self.random = random.Random(seed)
        self.profile = profile
        self.threads = [Thread(self, f"thread-{number:06}") for number in range(threads)]
        total, self.weights = 0.0, []
        for rank in range(threads):
            # Zipf, flattened at the head: no thread of a fleet makes a tenth of its traffic.
            total += 1.0 / (rank + 10)
            self.weights.append(total)
        picture = " ".join(self.random.choice(WORDS) for _ in range(20_000))
        self.picture = picture

    def text(self, size):
        start = self.random.randrange(len(self.picture) - size)
        return self.picture[start : start + size]

    def size(self, least, most):
        """Between the two, small ones more often than large ones."""
        return int(least * (most / least) ** self.random.random())

    def events(self, count):
        """(thread_id, value) pairs."""
        for _ in range(count):
            thread = self.threads[bisect(self.weights, self.random.random() * self.weights[-1])]
            yield thread.id, thread.next()


class Thread:
    def __init__(self, generator, thread_id):
        self.generator, self.random, self.id = generator, generator.random, thread_id
        self.queue, self.turn, self.sent, self.calls = [], 0, 0, 0
        self.names_turns = self.random.random() < 0.8

    def next(self):
        while not self.queue:
            turns = {"mix": self.working_turn, "small": self.small_turn, "trouble": self.turn_script}
            self.queue = turns[self.generator.profile]()
        return self.queue.pop(0).encode("utf-8", "surrogatepass")

    def event(self, kind, **fields):
        self.sent += 1
        event = {"type": kind, "thread_id": self.id, "event_id": f"{self.id}/{self.turn}/{self.sent}/{kind}"}
        if self.names_turns:
            event["turn_id"] = f"turn-{self.turn:04}"
        event["agent_id"] = "coder-7"
        if self.generator.profile != "trouble":
            event.update(user_id="user-4711", tenant_id="acme", run_id="run-20260101-000017", timestamp=TIMESTAMP)
        return spelled({**event, **fields})

    def call_id(self):
        self.calls += 1
        return f"call_{self.id}_{self.turn}_{self.calls:012}"

    # The realistic profile.

    def working_turn(self):
        self.turn += 1
        events, kind = [self.event("turn_start")], self.random.random()
        steps = self.random.randint(2, 12)
        for step in range(steps):
            tool = self.random.choice(READING + WRITING)
            if step == 0 and kind < 0.07:
                # About one event in a hundred is denied, or stopped for safety.
                tool = self.random.choice(DENIED)
            safety = step == 0 and 0.07 <= kind < 0.2
            call_id, arguments = self.call_id(), self.arguments()
            events.append(self.model_answer(call_id, tool, arguments, "content_filter" if safety else "tool_calls"))
            repeats = self.random.randint(2, 4) if step == 1 and kind > 0.85 else 1
            result = self.result(failed=repeats > 1)
            for _ in range(repeats):
                fields = {"tool_call_id": call_id, "tool_name": tool}
                events.append(self.event("tool_call", **fields, tool_input=arguments))
                if not safety and tool not in DENIED:
                    events.append(self.event("tool_result", **fields, result=result))
                call_id = self.call_id()
        events.append(self.event("turn_end"))
        return events

    def arguments(self):
        generator = self.generator
        arguments = {
            "path": f"src/module_{self.random.randrange(40)}/component_{self.random.randrange(60)}.py",
            "start_line": self.random.randrange(500),
            "reason": generator.text(generator.size(20, 3_600)),
        }
        return arguments

    def result(self, failed):
        text = self.generator.text(self.generator.size(120, 15_500))
        if failed:
            return spelled({"error": "the file is not there", "output": text[:2_000]})
        return text if self.random.random() < 0.5 else spelled({"exit_code": 0, "output": text})

    def model_answer(self, call_id, tool, arguments, reason):
        text = self.generator.text(self.random.randint(2_600, 6_500))
        function = {"name": tool, "arguments": spelled(arguments)}
        message = {"role": "assistant", "content": text, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
        usage = {"prompt_tokens": 4711, "completion_tokens": 815, "total_tokens": 5526}
        choice = {"index": 0, "finish_reason": reason, "message": message}
        body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        return self.event("model_response", provider="openai", response=body)

    # The profile of small events.

    def small_turn(self):
        self.turn += 1
        events = []
        for _ in range(8):
            fields = {"tool_call_id": self.call_id(), "tool_name": "read_file"}
            arguments = {"path": f"src/module_{self.random.randrange(40)}.py", "start_line": self.calls, "reason": self.generator.text(140)}
            events.append(self.event("tool_call", **fields, tool_input=arguments))
            events.append(self.event("tool_result", **fields, result=self.generator.text(180)))
        return events

    # The profile for equality.

    def turn_script(self):
        self.turn += 1
        self.open_turn = []
        if self.random.random() < 0.7:
            self.open_turn.append(self.event("turn_start"))
        for _ in range(self.random.randint(1, 5)):
            scene = self.random.choice(
                (self.work, self.work, self.fail_again, self.fail_differently, self.no_progress, self.safety_stop, self.safety_stop)
                + (self.denied, self.repeated, self.result_alone, self.invalid, self.late, self.parallel, self.api_error)
            )
            scene()
        if self.random.random() < 0.6:
            self.open_turn.append(self.event("turn_end"))
        if self.random.random() < 0.1:
            # A host that sends twice.
            at = self.random.randrange(len(self.open_turn))
            self.open_turn.insert(at, self.open_turn[at])
        return self.open_turn

    def put(self, kind, call_id, tool, **fields):
        self.open_turn.append(self.event(kind, tool_call_id=call_id, tool_name=tool, **fields))

    def call(self, tool, arguments, call_id=None):
        call_id = call_id or self.call_id()
        self.put("tool_call", call_id, tool, **self.input(arguments))
        return call_id

    def input(self, arguments):
        """One value in one of its spellings."""
        if not isinstance(arguments, dict):
            return {"arguments": arguments} if isinstance(arguments, str) else {"tool_input": arguments}
        spelling = self.random.random()
        if spelling < 0.3:
            return {"arguments": json.dumps(arguments, ensure_ascii=self.random.random() < 0.5, indent=self.random.choice((None, 1)))}
        names = list(arguments)
        self.random.shuffle(names)
        return {"tool_input": {name: arguments[name] for name in names}}

    def some_arguments(self):
        values = (1, 1.0, True, None, "ü", "😀", 100.0, 1e2, 0.1, -0.0, 12345678901234567, "", [1, {"b": 2, "a": 1}], "x\n\t\u2028")
        if self.random.random() < 0.1:
            return self.random.choice(([1], "not json", "", 5, None, True, {}))
        return {name: self.random.choice(values) for name in self.random.sample(("q", "path", "é", "Z", "a", "10", "9"), 3)}

    def work(self):
        tool, arguments = self.random.choice(READING + WRITING), self.some_arguments()
        call_id = self.call(tool, arguments)
        fields = self.input(arguments) if self.random.random() < 0.5 else {}
        self.put("tool_result", call_id, tool, result=self.any_result(), **fields)

    def any_result(self):
        return self.random.choice(
            (
                *("fine", "", None, 5, True, [], {"output": "x"}, '{"output":"x"}', '{"exit_code":0}', '{"exit_code":1}'),
                *('{"exit_code":"0"}', '{"exit_code":0.0,"error":""}', '{"exit_code":false,"success":false}', '{"error":null}'),
                *('{"error":0}', '{"error":"x"}', '{"success":0}', '{"failed":true}', '{"failed":1}', "Error: x", "error: x", "error x"),
                *("Traceback (most recent call last)", 'x "error" y', 'x "FAILED" y', "Errors: 0", " Error: x", "failed", "[]", "null"),
                *('[{"error":null}]', '"error"', "5", " 5 ", '{"x":NaN,"error":null}', '{"x":01,"error":null}', '{"error":null} x'),
                *("x" * 491 + "traceback", "x" * 492 + "traceback", "😀" * 493 + '"error"', "😀" * 494 + '"error"', {"error": "x"}),
                *('{"success":false,"error":"would exceed the limit"}', '{"exit_code":1,"exit_code":0}', "tracebac\u212a", [{"error": None}]),
                *('{"x":"\\ud800","error":null}', "\ufeff{}", '{"exit_code":1e400}', '{"exit_code":[]}', '{"x":1E400,"error":null}'),
            )
        )

    def fail_again(self):
        tool, arguments = self.random.choice(WRITING + READING), self.some_arguments()
        for _ in range(self.random.randint(2, 4)):
            call_id = self.call(tool, arguments)
            self.put("tool_result", call_id, tool, result="Error: not there" if tool != "terminal" else '{"exit_code":2}')

    def fail_differently(self):
        tool = self.random.choice(WRITING)
        for number in range(self.random.randint(3, 7)):
            call_id = self.call(tool, {"n": number})
            failed = {"failed": True} if self.random.random() < 0.9 else {"failed": False}
            self.put("tool_result", call_id, tool, result="whatever", **failed)

    def no_progress(self):
        tool, arguments = self.random.choice(READING), self.some_arguments()
        spellings = ('{"a":1,"b":[2.0,"ü"]}', '{"b": [2.0, "\\u00fc"], "a": 1}', '{ "a":1,\n"b":[2.0,"ü"]}')
        for _ in range(self.random.randint(2, 4)):
            call_id = self.call(tool, arguments)
            result = self.random.choice(spellings) if self.random.random() < 0.9 else f"another {self.random.random()}"
            self.put("tool_result", call_id, tool, result=result)

    def denied(self):
        tool = self.random.choice(DENIED)
        call_id = self.call(tool, self.some_arguments())
        if self.random.random() < 0.5:
            self.put("tool_result", call_id, tool, result="Guardrail denied", **self.input({"q": 1}))

    def parallel(self):
        tool, arguments = self.random.choice(READING + WRITING), self.some_arguments()
        ids = [self.call(tool, arguments) for _ in range(3)]
        for call_id in ids:
            self.put("tool_result", call_id, tool, result=self.random.choice(("Error: x", "same", '{"error":"x"}')))

    def repeated(self):
        """The same event again, the call again under another event, and a second result."""
        tool, arguments = self.random.choice(READING + WRITING), self.some_arguments()
        call_id = self.call(tool, arguments)
        again = self.random.random()
        if again < 0.4:
            self.open_turn.append(self.open_turn[-1])
        elif again < 0.7:
            self.call(tool, arguments, call_id)
        self.put("tool_result", call_id, tool, result="Error: x")
        if self.random.random() < 0.5:
            self.open_turn.append(self.open_turn[-1])
        if self.random.random() < 0.5:
            self.put("tool_result", call_id, tool, result="another")
        if self.random.random() < 0.4:
            # The id is used for another call.
            self.call(tool, {"other": True}, call_id)
            self.put("tool_result", call_id, tool, result="Error: y")

    def result_alone(self):
        tool = self.random.choice(READING + WRITING)
        fields = self.input({"q": 1}) if self.random.random() < 0.7 else {}
        self.put("tool_result", self.call_id(), tool, result=self.any_result(), **fields)

    def late(self):
        """An event of an earlier turn."""
        if self.turn > 2 and self.names_turns:
            event = json.loads(self.event("tool_result", tool_call_id="late", tool_name="patch", tool_input={}, result="Error: late"))
            event["turn_id"] = f"turn-{self.turn - self.random.randint(1, 2):04}"
            self.open_turn.append(spelled(event))

    def invalid(self):
        call = {"tool_call_id": "x", "tool_name": "patch"}
        kind, fields = self.random.choice(
            (
                ("tool_called", {}),
                ("tool_call", {"tool_call_id": "x", "tool_input": {}}),
                ("tool_call", {"tool_call_id": 5, "tool_name": "patch"}),
                ("tool_call", {**call, "tool_input": {}, "arguments": "{}"}),
                ("tool_call", {**call, "tool_name": "x" * 513}),
                ("tool_result", call),
                ("tool_result", {**call, "result": "x", "failed": "yes", "tool_input": {}}),
                ("tool_result", {**call, "tool_call_id": self.call_id(), "result": "not seen"}),
                ("model_response", {}),
                ("model_response", {"response": "text"}),
                ("model_response", {"response": {}, "message": {}}),
                ("turn_start", {"turn_id": 5}),
            )
        )
        self.open_turn.append(self.event(kind, **fields))

    def api_error(self):
        self.open_turn.append(self.event("model_response", error={"error": {"code": "content_filter", "message": "x"}}))

    def safety_stop(self):
        reason = self.random.choice(
            ("content_filter", "Content_Filter", "content_filtercontent_filter", "SAFETY", "safety", "SPII", "RECITATION", "IMAGE_SAFETY")
            + ("refusal", "REFUSAL", "stop", "STOP", "length", "tool_calls", "tool_use", "end_turn", "", "content_filter ", "STOPSTOP", None)
        )
        calls = [(self.call_id(), self.random.choice(READING + WRITING)) for _ in range(self.random.choice((0, 1, 1, 2)))]
        spelling = self.random.choice((self.openai, self.anthropic, self.gemini, self.langchain))
        self.open_turn.append(self.event("model_response", **spelling(reason, calls)))
        for call_id, tool in calls:
            if self.random.random() < 0.8:
                self.call(tool, self.some_arguments(), call_id)
            if self.random.random() < 0.5:
                self.put("tool_result", call_id, tool, result="Error: x", **self.input({"q": 1}))

    def openai(self, reason, calls):
        listed = [{"id": call_id, "type": "function", "function": {"name": tool, "arguments": '{"pa'}} for call_id, tool in calls]
        message = {"role": "assistant", "content": self.random.choice((None, "", "text"))}
        if listed and self.random.random() < 0.2:
            message["function_call"] = {"name": listed[0]["function"]["name"], "arguments": "{"}
        if self.random.random() < 0.8:
            message["tool_calls"] = listed
        choices = [{"index": 0, "finish_reason": reason, "stop_reason": "refusal", "message": message}]
        return {"response": {"id": "chatcmpl-1", "object": "chat.completion", "choices": choices}}

    def anthropic(self, reason, calls):
        content = [{"type": "text", "text": "x"}, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]
        content += [{"type": "tool_use", "id": call_id, "name": tool, "input": {"stop_reason": "refusal"}} for call_id, tool in calls]
        return {"response": {"type": "message", "role": "assistant", "content": content, "stop_reason": reason}}

    def gemini(self, reason, calls):
        # As Gemini has it, without ids: until the model answers again any call of such a tool is meant.
        parts = [{"text": " "}] + [{"functionCall": {"name": tool, "args": {}}} for _, tool in calls]
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": reason, "safetyRatings": []}
        return {"response": {"candidates": [candidate]}}

    def langchain(self, reason, calls):
        listed = [{"id": call_id, "name": tool, "args": {}} for call_id, tool in calls]
        field = self.random.choice(("finish_reason", "stop_reason"))
        message = {"content": "", self.random.choice(("tool_calls", "invalid_tool_calls")): listed}
        message["response_metadata"] = {field: reason} if self.random.random() < 0.6 else {}
        message["additional_kwargs"] = {field: self.random.choice(("refusal", "content_filter"))} if self.random.random() < 0.5 else {}
        if self.random.random() < 0.3:
            mirrors = [{"id": call_id, "function": {"name": tool, "arguments": "{}"}} for call_id, tool in calls]
            message["additional_kwargs"]["tool_calls"] = mirrors
        shape = self.random.random()
        if shape < 0.3:
            message = {"type": "ai", "data": message}
        elif shape < 0.5:
            message = {"lc": 1, "type": "constructor", "kwargs": message}
        return {"message": message}


if __name__ == "__main__":
    # traffic.py PROFILE SEED EVENTS: events as JSONL.
    for _, value in Generator(int(sys.argv[2]), 100, sys.argv[1]).events(int(sys.argv[3])):
        sys.stdout.buffer.write(value + b"\n")

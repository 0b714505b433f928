"""The gate's rules in Python: event and thread state in, verdict out. No Kafka, no clock.

The rules are the ones that Tollgate has by default: three safety detectors, a list of denied tools and the repetition
controller. Parsing is orjson's, as a team that cares for throughput would choose; what orjson refuses and Python's own
parser takes (NaN, Infinity, half a surrogate pair) goes to the latter, so that both kinds of text are classified alike.
"""

import hashlib
import json
from collections import OrderedDict

import orjson

EXACT_WARN, EXACT_BLOCK = 2, 2
SAME_TOOL_WARN, SAME_TOOL_HALT = 3, 5
NO_PROGRESS_WARN, NO_PROGRESS_BLOCK = 2, 2

MUTATING = frozenset(
    "terminal execute_code write_file patch todo memory skill_manage browser_click browser_type browser_press"
    " browser_scroll browser_navigate send_message cronjob delegate_task process".split()
)
IDEMPOTENT = (
    frozenset(
        "read_file search_files web_search web_extract session_search browser_snapshot browser_console"
        " browser_get_images mcp_filesystem_read_file mcp_filesystem_read_text_file"
        " mcp_filesystem_read_multiple_files mcp_filesystem_list_directory"
        " mcp_filesystem_list_directory_with_sizes mcp_filesystem_directory_tree mcp_filesystem_get_file_info"
        " mcp_filesystem_search_files".split()
    )
    - MUTATING
)

EARLIER_TURNS_MAX = 4
CALLS_MAX = 256
SUPPRESSED_MAX = 512
WINDOW = 500

_SORTED = orjson.OPT_SORT_KEYS
_MISSING = object()
_EMPTY_ARGS = hashlib.sha256(b"{}").digest()


def parse(text):
    """Parses JSON text; raises ValueError for anything else."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def canonical(value):
    """One spelling for every JSON value: keys sorted, no white space."""
    try:
        return orjson.dumps(value, option=_SORTED)
    except TypeError:
        # An integer beyond 64 bits, or half a surrogate pair.
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


def args_digest(value):
    """The digest of a call's arguments; anything but an object counts as an empty one."""
    if not isinstance(value, dict) or not value:
        return _EMPTY_ARGS
    return hashlib.sha256(canonical(value)).digest()


class Invalid(Exception):
    """The event breaks a rule of the contract."""


class Thread:
    """What a thread's running turn remembers."""

    __slots__ = (
        "turn_id",
        "started_by",
        "has_ended",
        "earlier",
        "failures",
        "tool_failures",
        "progress",
        "calls",
        "suppressed_ids",
        "suppressed_tools",
        "any_suppressed",
        "all_suppressed",
        "new_calls",
        "late_calls",
        "seen",
    )

    def __init__(self):
        self.turn_id = None
        self.started_by = None
        self.has_ended = False
        self.earlier = ()
        self._forget()
        self.suppressed_ids = set()
        self.suppressed_tools = set()
        self.any_suppressed = False
        self.all_suppressed = False
        # Why calls that are new since the last response may not run, and why calls that name a turn before this turn may not: "" is no reason.
        self.new_calls = ""
        self.late_calls = ""
        # The last responses, by event and by whether they were stopped.
        self.seen = ()

    def _forget(self):
        self.failures = {}
        self.tool_failures = {}
        self.progress = {}
        self.calls = OrderedDict()

    def has_suppressed(self):
        return bool(self.suppressed_ids or self.suppressed_tools or self.any_suppressed or self.all_suppressed or self.new_calls or self.late_calls)

    def next_turn(self, turn_id, started_by):
        # What was suppressed stays so: a call that comes late may bear the id of any turn.
        if self.turn_id is not None:
            self.earlier = (*self.earlier[-(EARLIER_TURNS_MAX - 1) :], self.turn_id)
        self._forget()
        if started_by is not None and self.new_calls:
            self.new_calls, self.late_calls = "", self.new_calls
        self.turn_id, self.started_by, self.has_ended = turn_id, started_by, False

    def end_turn(self):
        self._forget()
        if self.has_suppressed():
            self.has_ended = True
        else:
            self.__init__()

    def is_over(self):
        return not (
            self.turn_id is not None
            or self.started_by is not None
            or self.earlier
            or self.calls
            or self.failures
            or self.tool_failures
            or self.progress
            or self.has_suppressed()
        )

    def enter(self, kind, turn_id, event_id):
        """Brings the thread to the turn that an event belongs to."""
        if kind == "turn_start":
            is_repeat = self.started_by == event_id or (turn_id is not None and turn_id == self.turn_id)
            if not is_repeat and turn_id not in self.earlier:
                self.next_turn(turn_id, event_id)
        elif kind == "turn_end":
            if turn_id is None or self.turn_id is None or turn_id == self.turn_id:
                self.end_turn()
        elif kind == "model_response" and self.has_ended and turn_id is None:
            self.next_turn(None, None)
        elif turn_id is not None and turn_id != self.turn_id and turn_id not in self.earlier:
            self.next_turn(turn_id, None)

    def suppress(self, call_id, tool):
        if self.all_suppressed:
            return
        if call_id is None and tool is None:
            self.any_suppressed = True
            return
        entries, entry = (self.suppressed_ids, call_id) if call_id is not None else (self.suppressed_tools, tool)
        if entry not in entries:
            if len(entries) < SUPPRESSED_MAX:
                entries.add(entry)
            elif call_id is not None:
                self.all_suppressed = True
            else:
                self.any_suppressed = True

    def stops(self, call_id, tool, is_known, turn_id):
        """Returns the ruling on a call that may not run. A new call that may not run stays suppressed under its id."""
        is_new = not is_known or not call_id
        is_listed = self.is_suppressed(call_id, tool)
        is_late = turn_id is not None and turn_id != self.turn_id
        why = self.late_calls if is_late and self.late_calls else self.new_calls
        if is_new and why:
            if call_id and not is_listed:
                self.suppress(call_id, tool)
            return NOT_READ if why == "unread" else SUPPRESSED
        return SUPPRESSED if is_listed else None

    def cut_off(self, why, is_late):
        if is_late:
            self.late_calls = why
        else:
            self.new_calls = why

    def is_new_response(self, event_id, is_stop):
        """Notes a response. Returns whether it is another response than the last three."""
        if (event_id, is_stop) in self.seen:
            return False
        self.seen = ((event_id, is_stop), *self.seen[:2])
        return True

    def is_suppressed(self, call_id, tool):
        return (
            self.all_suppressed
            or self.any_suppressed
            or call_id in self.suppressed_ids
            or tool in self.suppressed_tools
        )


class Call:
    """A tool call of the turn, with what was answered to it and to its result."""

    __slots__ = ("tool", "args", "call_event", "call_ruling", "result_event", "result_ruling", "is_open")

    def __init__(self, tool, args):
        self.tool, self.args = tool, args
        self.call_event = self.call_ruling = self.result_event = self.result_ruling = None
        self.is_open = False


# A ruling is (action, code, source, count); the message follows from it and the tool's name.
ALLOW_0 = ("allow", "allow", "none", 0)
SUPPRESSED = ("block", "suppressed_tool_call", "safety", None)
NOT_READ = ("block", "response_not_read", "safety", None)
DENIED = ("block", "oap.tool_not_allowed", "guardrail", None)
NOT_EXECUTED = ("allow", "not_executed", "none", None)

MESSAGES = {
    "allow": "",
    "response_not_read": "The response that made this call could not be read.",
    "suppressed_tool_call": "The response that made this call was stopped for safety reasons.",
    "oap.tool_not_allowed": "tool '{tool}' is denied",
    "not_executed": "The call was not allowed to run, so its result changes nothing.",
    "repeated_exact_failure_block": "{tool} failed {count} times with the same arguments; do not retry it unchanged.",
    "idempotent_no_progress_block": "{tool} returned the same result {count} times; use it or ask something else.",
    "same_tool_failure_halt": "{tool} failed {count} times this turn; choose a different approach.",
    "repeated_exact_failure_warning": "{tool} has failed {count} times with the same arguments; change strategy.",
    "same_tool_failure_warning": "{tool} has failed {count} times this turn; change approach before retrying.",
    "idempotent_no_progress_warning": "{tool} returned the same result {count} times; use it or change the query.",
}


def before_call(thread, signature, tool):
    failures = thread.failures.get(signature, 0)
    if failures >= EXACT_BLOCK:
        return ("block", "repeated_exact_failure_block", "loop", failures)
    progress = thread.progress.get(signature)
    if progress is not None and progress[1] >= NO_PROGRESS_BLOCK and tool in IDEMPOTENT:
        return ("block", "idempotent_no_progress_block", "loop", progress[1])
    return ALLOW_0


def after_failure(thread, signature, tool):
    thread.progress.pop(signature, None)
    exact = thread.failures[signature] = thread.failures.get(signature, 0) + 1
    same_tool = thread.tool_failures[tool] = thread.tool_failures.get(tool, 0) + 1
    if same_tool >= SAME_TOOL_HALT:
        return ("halt", "same_tool_failure_halt", "loop", same_tool)
    if exact >= EXACT_WARN:
        return ("warn", "repeated_exact_failure_warning", "loop", exact)
    if same_tool >= SAME_TOOL_WARN:
        return ("warn", "same_tool_failure_warning", "loop", same_tool)
    return ("allow", "allow", "none", exact)


def after_success(thread, signature, tool, text, value):
    thread.tool_failures.pop(tool, None)
    thread.failures.pop(signature, None)
    if tool not in IDEMPOTENT:
        thread.progress.pop(signature, None)
        return ALLOW_0
    spelled = text.encode("utf-8", "surrogatepass") if value is None or value is _MISSING else canonical(value)
    digest = hashlib.sha256(spelled).digest()
    last = thread.progress.get(signature)
    repeats = last[1] + 1 if last is not None and last[0] == digest else 1
    thread.progress[signature] = (digest, repeats)
    if repeats >= NO_PROGRESS_WARN:
        return ("warn", "idempotent_no_progress_warning", "loop", repeats)
    return ("allow", "allow", "none", repeats)


def is_failure(tool, text, value):
    """Whether a result counts as a failure; `value` is the text parsed, or _MISSING if it is no JSON."""
    if isinstance(value, dict):
        if tool == "terminal":
            exit_code = value.get("exit_code")
            if exit_code is not None and exit_code != 0:
                return True
        error = value.get("error")
        return (
            value.get("success") is False
            or value.get("failed") is True
            or (error is not None and error != "")
        )
    if tool == "terminal":
        return False
    lower = text[:WINDOW].lower()
    return (
        "traceback" in lower
        or lower.startswith("error:")
        or '"error"' in lower
        or '"failed"' in lower
        or text.startswith("Error")
    )


# Safety detectors: name, kind of field, values. The first that matches counts.
DETECTORS = (
    ("openai_compatible_content_filter", "finish", ("content_filter",)),
    ("anthropic_refusal", "stop", ("refusal",)),
    (
        "gemini_safety",
        "finish",
        (
            "safety",
            "blocklist",
            "prohibited_content",
            "spii",
            "recitation",
            "image_safety",
            "image_prohibited_content",
            "image_recitation",
        ),
    ),
)


# The words of responses that ended as they should.
COMPLETE = ("stop", "end_turn", "tool_calls", "tool_use", "function_call", "stop_sequence", "pause_turn")

# The events that are no responses. A record of any other type that breaks the contract may be one.
OTHERS = ("turn_start", "tool_call", "tool_result", "turn_end", "thread_reset")


def items(value):
    return value if isinstance(value, list) else ()


def member(value, key):
    return value.get(key) if isinstance(value, dict) else None


def text_of(value):
    """A string that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def is_repetition(value, known):
    # Merging stream chunks repeats a value: STOPSTOP is STOP.
    return len(value) % len(known) == 0 and value == known * (len(value) // len(known))


def native_reasons(body):
    for choice in items(body.get("choices")):
        yield "finish", "finish_reason", text_of(member(choice, "finish_reason"))
    for candidate in items(body.get("candidates")):
        yield "finish", "finishReason", text_of(member(candidate, "finishReason"))
        yield "finish", "finish_reason", text_of(member(candidate, "finish_reason"))
    yield "stop", "stop_reason", text_of(body.get("stop_reason"))


def unwrap(message):
    for key in ("kwargs", "data"):
        inner = message.get(key)
        if isinstance(inner, dict):
            return inner
    return message


def langchain_places(message):
    places = [message.get(place) for place in ("response_metadata", "additional_kwargs")]
    return [member(place, field) for place in places for field in ("finish_reason", "stop_reason")]


def langchain_reasons(message):
    for kind, field in (("finish", "finish_reason"), ("stop", "stop_reason")):
        for place in ("response_metadata", "additional_kwargs"):
            value = text_of(member(message.get(place), field))
            if value is not None:
                yield kind, field, value
                break


def detect(reasons):
    """(detector, field, value) of the first detector that sees a safety stop, or None."""
    found = [(kind, field, value, value.lower()) for kind, field, value in reasons if value is not None]
    for name, wanted, known in DETECTORS:
        for kind, field, value, lower in found:
            if kind == wanted and any(is_repetition(lower, one) for one in known):
                return name, field, value
    return None


def is_over(words):
    """Whether a word says that the response is over: any word that is no stop of any provider, since no response here is a stream."""
    stops = [stop for _, _, known in DETECTORS for stop in known]
    return any(not any(is_repetition(word.strip().lower(), stop) for stop in stops) for word in words if text_of(word))


def is_complete(words):
    """Whether a word says that the response ended as it should."""
    return any(is_repetition(word.strip().lower(), known) for word in words if text_of(word) for known in COMPLETE)


def says_something(body):
    """Whether there is a call or a text in a response or a message."""
    if CallList().native(body) or CallList().langchain(body):
        return True
    contents = [member(member(choice, key), "content") for choice in items(body.get("choices")) for key in ("message", "delta")]
    contents += [member(member(candidate, "content"), "parts") for candidate in items(body.get("candidates"))]
    texts = [text for content in (*contents, body.get("content")) for text in (content, *(member(part, "text") for part in items(content)))]
    return any(isinstance(text, str) and text.strip() for text in texts)


class CallList:
    """The tool calls of a response, mirrors of the same call counted once."""

    def __init__(self):
        self.calls = []
        self.ids = set()

    def push(self, call_id, name):
        call_id, name = text_of(call_id), text_of(name)
        if call_id is not None:
            if call_id in self.ids:
                return
            self.ids.add(call_id)
        self.calls.append((call_id, name))

    def openai(self, message):
        for call in items(message.get("tool_calls")):
            function = member(call, "function") or member(call, "custom")
            name = member(function, "name")
            self.push(member(call, "id"), name if name is not None else member(call, "name"))
        function = message.get("function_call")
        if function is not None:
            name = text_of(member(function, "name"))
            if name is None or all(name != known for _, known in self.calls):
                self.calls.append((None, name))

    def blocks(self, content):
        for block in items(content):
            if member(block, "type") in ("tool_use", "tool_call", "function_call"):
                call_id = block.get("id")
                self.push(call_id if call_id is not None else block.get("call_id"), block.get("name"))

    def native(self, body):
        for choice in items(body.get("choices")):
            for key in ("message", "delta"):
                message = member(choice, key)
                if isinstance(message, dict):
                    self.openai(message)
                    self.blocks(message.get("content"))
        for candidate in items(body.get("candidates")):
            for part in items(member(member(candidate, "content"), "parts")):
                call = member(part, "functionCall") or member(part, "function_call")
                if call is not None:
                    self.push(member(call, "id"), member(call, "name"))
        self.blocks(body.get("content"))
        return self.calls

    def langchain(self, message):
        for key in ("tool_calls", "invalid_tool_calls", "tool_call_chunks"):
            for call in items(message.get(key)):
                self.push(member(call, "id"), member(call, "name"))
        if isinstance(message.get("additional_kwargs"), dict):
            self.openai(message["additional_kwargs"])
        self.blocks(message.get("content"))
        return self.calls


class Gate:
    """The rules with their configuration."""

    def __init__(self, denied_tools=()):
        self.denied_tools = frozenset(denied_tools)

    def decide(self, thread, event, thread_id, event_id):
        """The verdict on an event as JSON bytes, or None for a turn boundary. Changes the thread."""
        kind = event["type"]
        turn_id = optional_text(event, "turn_id", 256)
        if kind == "tool_call" or kind == "tool_result":
            call_id = required_text(event, "tool_call_id", 512)
            tool = required_text(event, "tool_name", 512)
            args = self._arguments(event)
            if kind == "tool_call":
                thread.enter(kind, turn_id, event_id)
                args = _EMPTY_ARGS if args is _MISSING else args
                ruling = self._call(thread, call_id, tool, args, event_id, turn_id)
            else:
                if "result" not in event:
                    raise Invalid("result: nothing")
                if not isinstance(event.get("failed", False), (bool, type(None))):
                    raise Invalid("failed: not a boolean")
                thread.enter(kind, turn_id, event_id)
                ruling = self._result(thread, call_id, tool, args, event, event_id)
            return self._verdict(thread, kind, turn_id, thread_id, event_id, call_id, tool, ruling)
        if kind == "model_response":
            bodies = [name for name in ("response", "message", "error") if event.get(name) is not None]
            if len(bodies) != 1:
                raise Invalid("response: not exactly one of response, message and error")
            body = event[bodies[0]]
            if not isinstance(body, dict) and not (bodies[0] == "error" and isinstance(body, str)):
                raise Invalid(f"{bodies[0]}: not an object")
            thread.enter(kind, turn_id, event_id)
            return self._response(thread, bodies[0], body, turn_id, thread_id, event_id)
        if kind not in ("turn_start", "turn_end"):
            raise Invalid("type: unknown")
        thread.enter(kind, turn_id, event_id)
        return None

    @staticmethod
    def _arguments(event):
        """The digest of the arguments; _MISSING where they were left out."""
        tool_input, arguments = event.get("tool_input"), event.get("arguments")
        if tool_input is not None:
            if arguments is not None:
                raise Invalid("tool_input: both tool_input and arguments")
            return args_digest(tool_input)
        if arguments is None:
            is_null = "tool_input" in event or "arguments" in event
            return _EMPTY_ARGS if is_null else _MISSING
        if isinstance(arguments, str):
            try:
                arguments = parse(arguments)
            except ValueError:
                return _EMPTY_ARGS
        return args_digest(arguments)

    def _call(self, thread, call_id, tool, args, event_id, turn_id):
        record = thread.calls.get(call_id)
        is_same = record is not None and record.tool == tool and record.args == args
        if is_same and record.call_event == event_id:
            return record.call_ruling
        stopped = thread.stops(call_id, tool, is_same and record.is_open, turn_id)
        if stopped:
            ruling = stopped
        elif tool in self.denied_tools:
            ruling = DENIED
        else:
            ruling = before_call(thread, (tool, args), tool)
        record = note(thread, call_id, tool, args)
        record.call_event, record.call_ruling = event_id, ruling
        record.is_open = ruling[0] == "allow" or ruling[0] == "warn"
        return ruling

    def _result(self, thread, call_id, tool, args, event, event_id):
        record = thread.calls.get(call_id)
        if record is not None:
            if record.result_event == event_id:
                return record.result_ruling
            was_stopped = record.call_ruling is not None and record.call_ruling[0] == "block"
        else:
            was_stopped = thread.is_suppressed(call_id, tool)
        earlier = NOT_EXECUTED if was_stopped else None
        if earlier is None and record is not None and not record.is_open:
            earlier = record.result_ruling
        if earlier is not None:
            if record is None:
                record = note(thread, call_id, None, _EMPTY_ARGS)
            record.result_event, record.result_ruling = event_id, earlier
            return earlier
        if args is _MISSING:
            if record is None:
                raise Invalid("tool_input: nothing, and no tool_call with this tool_call_id in this turn")
            args = record.args
        ruling = self._observe(thread, tool, (tool, args), event)
        record = note(thread, call_id, tool, args)
        record.result_event, record.result_ruling, record.is_open = event_id, ruling, False
        return ruling

    @staticmethod
    def _observe(thread, tool, signature, event):
        result, failed = event["result"], event.get("failed")
        if failed is True:
            return after_failure(thread, signature, tool)
        value = _MISSING
        if result is None:
            text = ""
        elif isinstance(result, str):
            text = result
            if failed is None or tool in IDEMPOTENT:
                try:
                    value = parse(text)
                except ValueError:
                    pass
        else:
            text, value = canonical(result).decode("utf-8", "surrogatepass"), result
        if failed is None and result is not None and is_failure(tool, text, value):
            return after_failure(thread, signature, tool)
        return after_success(thread, signature, tool, text, value)

    @staticmethod
    def _verdict(thread, kind, turn_id, thread_id, event_id, call_id, tool, ruling):
        action, code, source, count = ruling
        message = MESSAGES[code].format(tool=tool, count=count) if code != "allow" else ""
        verdict = {
            "event_id": event_id,
            "type": kind,
            "thread_id": thread_id,
            "turn_id": turn_id if turn_id is not None else thread.turn_id,
            "tool_call_id": call_id,
            "tool_name": tool,
            "action": action,
            "allows_execution": action == "allow" or action == "warn",
            "should_halt": action == "halt" or (source == "loop" and action == "block"),
            "code": code,
            "message": message,
            "decided_by": source,
            "reasons": [{"source": source, "code": code, "message": message}] if source != "none" else [],
            "count": count,
        }
        return orjson.dumps(verdict)

    @staticmethod
    def _response(thread, spelling, body, turn_id, thread_id, event_id):
        found, calls = None, []
        if spelling == "response":
            found = detect(native_reasons(body))
            if found:
                calls = CallList().native(body)
        elif spelling == "message":
            message = unwrap(body)
            found = detect(langchain_reasons(message))
            if found:
                calls = CallList().langchain(message)
        verdict = {
            "event_id": event_id,
            "type": "model_response",
            "thread_id": thread_id,
            "turn_id": turn_id if turn_id is not None else thread.turn_id,
            "action": "allow",
            "allows_execution": True,
            "should_halt": False,
            "code": "allow",
            "message": "",
            "decided_by": "none",
            "reasons": [],
        }
        is_new = spelling != "error" and thread.is_new_response(event_id, found is not None)
        is_late = thread.has_ended or (turn_id is not None and turn_id != thread.turn_id)
        if found is None and (is_late or not is_new):
            return orjson.dumps(verdict)
        if found is None:
            # What does not say that it is over is no answer: what was cut off before it may still be in the host's hands.
            words = {
                "response": lambda: [value for _, _, value in native_reasons(body)],
                "message": lambda: langchain_places(message),
                "error": list,
            }
            said = words[spelling]()
            if is_over(said) and (is_complete(said) or says_something(message if spelling == "message" else body)):
                thread.suppressed_tools.clear()
                thread.any_suppressed = False
                thread.new_calls = ""
                if thread.suppressed_ids:
                    # An id that the provider begins again is the new call's.
                    again = CallList().langchain(message) if spelling == "message" else CallList().native(body)
                    thread.suppressed_ids -= {call_id for call_id, _ in again}
            return orjson.dumps(verdict)
        for call_id, name in calls:
            thread.suppress(call_id, name)
        if is_new:
            thread.cut_off("any", is_late)
        detector, field, value = found
        message = f"The provider stopped this response with a safety-related signal ({field}={value!r}, detector={detector!r})."
        verdict.update(
            action="suppress" if calls else "allow",
            allows_execution=not calls,
            code="safety_terminated",
            message=message,
            decided_by="safety",
            reasons=[{"source": "safety", "code": "safety_terminated", "message": message}],
            safety={
                "detector": detector,
                "reason_field": field,
                "reason_value": value,
                "suppressed_tool_call_count": len(calls),
                "suppressed_tool_call_names": [name or "unknown" for _, name in calls],
                "suppressed_tool_call_ids": [call_id for call_id, _ in calls if call_id is not None],
            },
        )
        return orjson.dumps(verdict)


def note(thread, call_id, tool, args):
    """The record of a call, to be changed. An id that is used for another call is that other call from here on."""
    calls = thread.calls
    record = calls.get(call_id)
    if record is None or (record.call_event is not None and (record.tool != tool or record.args != args)):
        if record is None and len(calls) >= CALLS_MAX:
            calls.popitem(last=False)
        record = calls[call_id] = Call(tool, args)
    record.tool, record.args = tool, args
    return record


def required_text(event, name, bytes_max):
    value = event.get(name, _MISSING)
    if not isinstance(value, str):
        raise Invalid(f"{name}: not a string")
    return bounded(value, name, bytes_max)


def optional_text(event, name, bytes_max):
    value = event.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name}: not a string")
    return bounded(value, name, bytes_max)


def bounded(value, name, bytes_max):
    # A character has at most four bytes, so most texts need no encoding to be told short enough.
    if len(value) * 4 > bytes_max and len(value.encode("utf-8", "surrogatepass")) > bytes_max:
        raise Invalid(f"{name}: too long")
    return value


def invalid_verdict(why, event, thread_id, event_id):
    """The verdict on an event that breaks the contract: closed."""
    verdict = {
        "event_id": event_id,
        "thread_id": thread_id,
        "action": "block",
        "allows_execution": False,
        "should_halt": False,
        "code": "invalid_event",
        "message": why,
        "decided_by": "envelope",
        "reasons": [{"source": "envelope", "code": "invalid_event", "message": why}],
    }
    for name in ("type", "tool_call_id", "tool_name"):
        if isinstance(event, dict) and isinstance(event.get(name), str):
            verdict[name] = event[name]
    return orjson.dumps(verdict)


class Threads:
    """The threads of a worker by partition and id, the least recently used forgotten first."""

    def __init__(self, threads_max):
        self.threads_max = threads_max
        self.threads = OrderedDict()

    def take(self, partition, thread_id):
        key = (partition, thread_id)
        thread = self.threads.get(key)
        if thread is None:
            thread = self.threads[key] = Thread()
            if len(self.threads) > self.threads_max:
                self.threads.popitem(last=False)
        else:
            self.threads.move_to_end(key)
        return thread

    def settle(self, partition, thread_id, thread):
        if thread.is_over():
            del self.threads[(partition, thread_id)]

    def drop_partitions(self, partitions):
        for key in [key for key in self.threads if key[0] in partitions]:
            del self.threads[key]


def decide_record(gate, threads, partition, key, value, coordinates):
    """One record: (thread_id, event_id, verdict bytes or None). An event whose thread cannot be told has no verdict."""
    thread_id = key.decode("utf-8", "replace") if key else None
    event, event_id = None, coordinates
    try:
        event = parse(value) if value else None
        if not isinstance(event, dict):
            raise Invalid("value: not a JSON object")
        named = optional_text(event, "thread_id", 256)
        if named is not None:
            if thread_id is not None and thread_id != named:
                thread_id = named
                raise Invalid("thread_id: another thread than the record's key")
            thread_id = named
        if not thread_id:
            raise Invalid("thread_id: nothing")
        named = optional_text(event, "event_id", 128)
        event_id = coordinates if named is None else named
        if not event_id or not isinstance(event.get("type"), str):
            raise Invalid("type or event_id: missing")
        thread = threads.take(partition, thread_id)
        try:
            verdict = gate.decide(thread, event, thread_id, event_id)
        finally:
            threads.settle(partition, thread_id, thread)
    except Invalid as error:
        verdict = refused(threads, partition, str(error), event, thread_id, event_id, value)
    except (ValueError, TypeError, RecursionError) as error:
        # No JSON, nested too deeply, or half a surrogate pair where a verdict would repeat it.
        thread_id, event_id = key.decode("utf-8", "replace") if key else None, coordinates
        verdict = refused(threads, partition, f"value: {type(error).__name__}", None, thread_id, event_id, value)
    return thread_id, event_id, verdict


def refused(threads, partition, why, event, thread_id, event_id, value):
    """The verdict on a record that breaks the contract, or None if its thread is not known. It may have been a response, unless it is empty."""
    if not thread_id:
        return None
    if value and member(event, "type") not in OTHERS:
        thread = threads.take(partition, thread_id)
        turn_id = member(event, "turn_id")
        thread.cut_off("unread", isinstance(turn_id, str) and turn_id in thread.earlier)
    return invalid_verdict(why, event, thread_id, event_id)

"""A small gate that speaks the HTTP contract: it answers as a test says, and keeps what it got."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The header by which Tollgate's commands know its server.
PROOF = {"x-tollgate": "gate"}


def allowed(event, **fields):
    """Returns a verdict that allows an event, with some fields changed."""
    plain = {"verdict_id": "v", "event_id": event["event_id"], "type": event["type"], "thread_id": event["thread_id"], "action": "allow"}
    return plain | {"allows_execution": True, "should_halt": False, "code": "allow", "message": "", "decided_by": "none"} | fields


def blocked(event, code="tool_denied", **fields):
    """Returns a verdict that blocks an event."""
    stopped = {"action": "block", "allows_execution": False, "code": code, "decided_by": "guardrail"}
    return allowed(event, **stopped, synthetic_result=f"blocked: {code}") | fields


def together(calls):
    """Returns a `decide` that allows every event, and a call only once so many calls are asked about at the same time."""
    barrier = threading.Barrier(calls)

    def decide(event):
        if event["type"] == "tool_call":
            barrier.wait(30)
        return allowed(event)

    return decide


class FakeGate:
    """A gate on a port of its own. `decide(event)` gives the verdict; `answer(events)`, if set, gives status, headers and body instead."""

    def __init__(self):
        self.events, self.headers, self.open, self.open_max = [], [], 0, 0
        self.decide, self.answer, self.known = allowed, None, {}
        self.released = threading.Event()
        self.lock = threading.Lock()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                gate.handle(self)

            def log_message(self, *_):
                """Keeps the tests' output clean."""

        class Server(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 512

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def handle(self, request):
        body = json.loads(request.rfile.read(int(request.headers["content-length"])))
        events = body if isinstance(body, list) else [body]
        with self.lock:
            self.events += events
            self.headers.append(dict(request.headers.items()))
            self.open += 1
            self.open_max = max(self.open_max, self.open)
        try:
            came = self.answer(events) if self.answer else self.usual(body, events)
        finally:
            with self.lock:
                self.open -= 1
        if came is None:
            request.close_connection = True
            return
        status, headers, text = came
        request.send_response(status)
        for name, value in {**headers, "content-length": str(len(text.encode()))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(text.encode())

    def usual(self, body, events):
        if events[0]["type"] in ("turn_start", "turn_end"):
            return 202, PROOF, ""
        verdicts = [self.decide(event) for event in events]
        return 200, PROOF, json.dumps(verdicts if isinstance(body, list) else verdicts[0])

    def knows_ids(self, events):
        """Answers as a gate does that knows its ids: it refuses another event under the id of an event."""
        bodies = [
            self.decide(event)
            if self.known.setdefault(event["event_id"], event) == event
            else blocked(event, "event_id_taken", event_id=None)
            for event in events
        ]
        status = 409 if any(body["code"] == "event_id_taken" for body in bodies) else 200
        return status, PROOF, json.dumps(bodies if len(bodies) > 1 else bodies[0])

    def of_type(self, kind):
        return [event for event in self.events if event["type"] == kind]

    def ids(self, kind):
        """Returns how many events of a type there are, of which a repeat is none."""
        return len({event["event_id"] for event in self.of_type(kind)})

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

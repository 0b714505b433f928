/** The gate beyond single questions: arrays, turns, bounds, abort, closing, logs, and what JSON cannot hold. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { context, propagation, trace } from "@opentelemetry/api";
import { Gate, childThread, type ToolCall } from "@tollgate/client";

import { Failure, Failures } from "../src/failure.js";
import { FakeGate, json, refusingTaken, verdictOf, type Received } from "./support/fake_gate.js";

const CALL: ToolCall = { thread_id: "t1", turn_id: "u1", tool_call_id: "c1", tool_name: "bash", tool_input: { command: "ls" } };

/** Returns a gate that logs nowhere, and whose deadline no test reaches. */
function gateTo(server: FakeGate, options: ConstructorParameters<typeof Gate>[0] = {}): Gate {
  return new Gate({ url: server.url, deadlineMs: 30_000, log: () => undefined, ...options });
}

test("the calls of a response are one request and keep their order", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ tool_call_id }) => (tool_call_id === "c2" ? { action: "block", code: "no" } : undefined);
  const calls = ["c1", "c2", "c3"].map((tool_call_id) => ({ ...CALL, tool_call_id }));
  const verdicts = await gateTo(server).toolCalls(calls);
  assert.deepEqual(verdicts.map(({ tool_call_id, allows_execution }) => [tool_call_id, allows_execution]), [["c1", true], ["c2", false], ["c3", true]]);
  assert.equal(server.requests.length, 1);
  assert.deepEqual(await gateTo(server).toolCalls([]), []);
});

test("calls of a response that share an id are decided each for itself", async () => {
  await using server = await FakeGate.start();
  server.fault = refusingTaken();
  const calls = ["ls", "pwd", "ls", "pwd"].map((command) => ({ ...CALL, tool_input: { command } }));
  const gate = gateTo(server);
  await gate.toolCall({ ...CALL, tool_input: { command: "id" } });
  const verdicts = await gate.toolCalls(calls);
  assert.equal(new Set(verdicts.map(({ event_id }) => event_id)).size, 4);
  assert.ok(verdicts.every(({ event_id, allows_execution }) => allows_execution && event_id.startsWith("u1/c1/call/")));
  assert.deepEqual(await gate.toolCalls(calls), verdicts);
});

for (const status of [503, 504]) {
  test(`a call that a verdict stops never fails open beside a call without a verdict: ${status}`, async () => {
    await using server = await FakeGate.start();
    const absent = { action: "block", allows_execution: false, code: "kafka_unreachable", message: "m" };
    server.fault = (response, { body }) => {
      const stopped = verdictOf((body as Received[])[0] as Received, { action: "block", code: "no" });
      return json(response, status, [stopped, absent], { "retry-after": "60" });
    };
    const gate = gateTo(server, { onFailure: "open", deadlineMs: 300 });
    const verdicts = await gate.toolCalls([CALL, { ...CALL, tool_call_id: "c2" }]);
    assert.deepEqual(verdicts.map(({ allows_execution }) => allows_execution), [false, false]);
    assert.equal(verdicts[1]?.code, status === 503 ? "kafka_unreachable" : "deadline_exceeded");
  });
}

test("verdicts in another order, or too few, block every call they do not name", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server);
  const calls = ["c1", "c2"].map((tool_call_id) => ({ ...CALL, tool_call_id }));
  server.fault = (response) => json(response, 200, []);
  assert.deepEqual((await gate.toolCalls(calls)).map(({ allows_execution }) => allows_execution), [false, false]);
  server.fault = (response) => json(response, 200, { allows_execution: true });
  assert.deepEqual((await gate.toolCalls(calls)).map(({ code }) => code), ["verdict_unreadable", "verdict_unreadable"]);
});

test("an event that breaks a rule blocks the calls beside it too", async () => {
  await using server = await FakeGate.start();
  const verdicts = await gateTo(server).toolCalls([CALL, { ...CALL, tool_call_id: "c2", tool_input: { n: NaN } }]);
  assert.deepEqual(verdicts.map(({ code, tool_call_id }) => [code, tool_call_id]), [["arguments_unsendable", "c1"], ["arguments_unsendable", undefined]]);
  assert.equal(server.requests.length, 0);
});

test("a field that the contract does not have is refused, and a field that is undefined counts as left out", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server, { attribution: { tenant_id: "acme" } });
  const misspelt = await gate.toolCall({ ...CALL, tool_inputs: {} } as ToolCall);
  assert.match(misspelt.message, /no field tool_inputs/);
  assert.equal((await gate.toolCall({ ...CALL, failed: true } as ToolCall)).code, "invalid_event");
  assert.equal((await gate.toolCall({ ...CALL, tenant_id: undefined })).code, "allow");
  assert.equal(server.events.length, 1);
  assert.equal(server.events[0]?.["tenant_id"], "acme");
});

test("a turn marks its boundaries, fills in its ids, and ends when its function fails", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server, { attribution: { agent_id: "a1", tenant_id: "acme" } });
  const failing = gate.turn({ thread_id: "t1", turn_id: "u1" }, async (turn) => {
    await turn.toolCall({ tool_call_id: "c1", tool_name: "bash", tool_input: {}, agent_id: "a2" });
    await turn.subagent("child", (child) => child.toolResult({ tool_call_id: "c1", tool_name: "bash", result: "r" }));
    throw new Error("the agent's own");
  });
  await assert.rejects(failing, /the agent's own/);
  assert.deepEqual(server.events.map(({ type, thread_id }) => [type, thread_id]), [
    ["turn_start", "t1"],
    ["tool_call", "t1"],
    ["turn_start", "t1/child"],
    ["tool_result", "t1/child"],
    ["turn_end", "t1/child"],
    ["turn_end", "t1"],
  ]);
  const [start, call, childStart, result] = server.events;
  assert.partialDeepStrictEqual(start, { event_id: "u1/turn_start/boundary", turn_id: "u1", agent_id: "a1", tenant_id: "acme" });
  assert.partialDeepStrictEqual(call, { event_id: "u1/c1/call", turn_id: "u1", agent_id: "a2" });
  assert.partialDeepStrictEqual(result, { is_subagent: true, turn_id: childStart?.["turn_id"] });
  assert.notEqual(childStart?.["turn_id"], "u1");
});

test("a turn without a function is disposed of, once, and remembers the verdict that stops it", async () => {
  await using server = await FakeGate.start();
  server.rule = () => ({ action: "halt", code: "stop" });
  {
    await using turn = await gateTo(server).turn("t1");
    assert.equal(Boolean(turn.halted), false);
    await turn.toolResult({ tool_call_id: "c1", tool_name: "bash", result: null });
    assert.equal(turn.halted?.code, "stop");
    await turn.end();
  }
  assert.equal(server.of("turn_end").length, 1);
});

test("turn boundaries that are lost are counted and end nothing", async () => {
  const gate = new Gate({ url: "http://127.0.0.1:1", log: () => undefined });
  assert.equal(await gate.turn("t1", () => 7), 7);
  assert.equal(gate.counts.boundaries_lost, 2);
});

test("a subagent's name is neither empty nor a path", () => {
  assert.equal(childThread("t", "a"), "t/a");
  for (const name of ["", "a/b"]) assert.throws(() => childThread("t", name), /name of a subagent/);
});

test("no more requests are under way than the bound, and who waits is answered", async () => {
  await using server = await FakeGate.start();
  const held: { call: string; answer: () => void }[] = [];
  server.fault = (response, { body }) => {
    const event = body as Received;
    held.push({ call: String(event["tool_call_id"]), answer: () => json(response, 200, verdictOf(event)) });
    return true;
  };
  const gate = gateTo(server, { inFlightMax: 2 });
  const calls = ["c1", "c2", "c3", "c4"];
  const asked = calls.map((tool_call_id) => gate.toolCall({ ...CALL, tool_call_id }));
  await server.arrived(2);
  assert.equal(gate.counts.in_flight, 2);
  for (let answered = 0; answered < 4; answered += 1) {
    await server.arrived(answered + 1);
    assert.ok(server.requests.length <= answered + 2);
    const { call, answer } = held.shift()!;
    answer();
    await asked[calls.indexOf(call)];
  }
  assert.deepEqual((await Promise.all(asked)).map(({ allows_execution }) => allows_execution), [true, true, true, true]);
  assert.equal(gate.counts.in_flight, 0);
});

test("who waits for a place beyond the deadline is blocked, and leaves the queue", async () => {
  await using server = await FakeGate.start();
  server.fault = () => true;
  const gate = gateTo(server, { inFlightMax: 1 });
  const stop = new AbortController();
  const first = gate.toolCall(CALL, { signal: stop.signal });
  await server.arrived(1);
  assert.equal((await gate.toolCall({ ...CALL, tool_call_id: "c2" }, { deadlineMs: 50 })).code, "client_busy");
  stop.abort();
  await assert.rejects(first);
  server.fault = undefined;
  assert.equal((await gate.toolCall({ ...CALL, tool_call_id: "c3" })).code, "allow");
});

test("an abort rejects with the caller's reason, before and while it is asked", async () => {
  await using server = await FakeGate.start();
  server.fault = () => true;
  const gate = gateTo(server, { onFailure: "open" });
  const reason = new Error("the user left");
  await assert.rejects(gate.toolCall(CALL, { signal: AbortSignal.abort(reason) }), reason);
  const stop = new AbortController();
  const asked = gate.toolCall(CALL, { signal: stop.signal });
  await server.arrived(1);
  stop.abort(reason);
  await assert.rejects(asked, reason);
  assert.equal(gate.counts.failed_open, 0);
});

test("a closed gate waits for what is under way and blocks what comes", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server, { onFailure: "open" });
  const asked = gate.toolCall(CALL);
  await server.arrived(1);
  await gate.close();
  assert.equal((await asked).action, "allow");
  assert.equal(gate.counts.in_flight, 0);
  assert.equal((await gate.toolCall(CALL)).code, "client_closed");
  assert.equal((await gate.toolCall(CALL)).allows_execution, false);
});

test("a gate that comes back is asked again", async () => {
  const before = await FakeGate.start();
  const { port } = before;
  const gate = gateTo(before);
  assert.equal((await gate.toolCall(CALL)).code, "allow");
  await before.stop();
  assert.equal((await gate.toolCall(CALL)).code, "gate_unreachable");
  await using after = await FakeGate.start(port);
  assert.equal((await gate.toolCall(CALL)).code, "allow");
  assert.equal(after.requests.length, 1);
});

test("failures are counted one by one and logged once a minute", () => {
  const lines: string[] = [];
  let now = 0;
  const failures = new Failures("open", (line) => lines.push(line), () => now);
  const event = { type: "tool_call" as const, thread_id: "secret-thread", event_id: "e" };
  const fail = (): void => void failures.verdict(event, new Failure("gate_unreachable", "no connection."));
  fail();
  fail();
  now = 59_999;
  fail();
  assert.equal(lines.length, 1);
  now = 60_000;
  fail();
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? "", /0 blocked, 4 allowed/);
  assert.equal(failures.counts.failed_open, 4);
  assert.ok(!lines.join("").includes("secret-thread"));
});

test("a logger that throws changes no verdict", async () => {
  const gate = new Gate({ url: "http://127.0.0.1:1", log: () => { throw new Error("disk full"); } });
  assert.equal((await gate.toolCall(CALL)).code, "gate_unreachable");
});

test("a token goes into the header alone, and a token function that fails blocks", async () => {
  await using server = await FakeGate.start();
  await gateTo(server, { token: () => Promise.resolve("s3cret") }).toolCall(CALL);
  assert.equal(server.requests[0]?.headers.authorization, "Bearer s3cret");
  assert.ok(!JSON.stringify(server.events).includes("s3cret"));
  const verdict = await gateTo(server, { token: () => { throw new Error("s3cret"); } }).toolCall(CALL);
  assert.equal(verdict.allows_execution, false);
  assert.ok(!JSON.stringify(verdict).includes("s3cret"));
});

test("a token that no header holds never opens, and a token function that hangs ends with the deadline", async () => {
  await using server = await FakeGate.start();
  const broken = await gateTo(server, { token: () => "s3cret\n", onFailure: "open" }).toolCall(CALL);
  assert.deepEqual([broken.allows_execution, broken.code], [false, "gate_unreachable"]);
  assert.ok(!JSON.stringify(broken).includes("s3cret"));
  const hanging = await gateTo(server, { token: () => new Promise<string>(() => undefined) }).toolCall(CALL, { deadlineMs: 50 });
  assert.equal(hanging.code, "deadline_exceeded");
});

test("the gate is told to answer before the client gives up", async () => {
  await using server = await FakeGate.start();
  await gateTo(server, { deadlineMs: 2000 }).toolCall(CALL);
  const wait = Number(/^wait=(\d+)$/.exec(String(server.requests[0]?.headers.prefer))?.[1]);
  assert.ok(wait > 0 && wait <= 1900, String(wait));
});

test("the gate is never asked to wait for longer than it would", async () => {
  await using server = await FakeGate.start();
  await new Gate({ url: server.url, deadlineMs: 600_000 }).toolCall({ thread_id: "t", tool_call_id: "c", tool_name: "bash", tool_input: {} });
  assert.equal(server.requests[0]?.headers.prefer, "wait=60000");
});

test("what JSON cannot hold is not asked about, and the message names place and shape only", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server);
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  for (const [value, shape] of [
    [{ password: new Uint8Array([1]) }, "Uint8Array"],
    [{ password: new Set(["hunter2"]) }, "Set"],
    [{ password: [NaN] }, "number"],
    [{ password: 10n }, "bigint"],
    [{ password: () => "hunter2" }, "function"],
    [{ password: "\ud800hunter2" }, "surrogate"],
    [{ password: [undefined] }, "missing"],
    [cycle, "nested deeper"],
    ["hunter2", "a string"],
  ] as const) {
    const verdict = await gate.toolCall({ ...CALL, tool_input: value });
    assert.equal(verdict.code, value === "hunter2" ? "invalid_event" : "arguments_unsendable");
    assert.match(verdict.message, new RegExp(`tool_input.*${shape}`));
    assert.ok(!/hunter2|password/.test(JSON.stringify(verdict)), verdict.message);
  }
  assert.equal(server.requests.length, 0);
  const held = await gate.toolCall({ ...CALL, tool_input: { at: new Date(0), gone: undefined, ["__proto__"]: { a: [null, true] } } });
  assert.equal(held.code, "allow");
  assert.equal(JSON.stringify(server.events[0]?.["tool_input"]), '{"at":"1970-01-01T00:00:00.000Z","__proto__":{"a":[null,true]}}');
});

test("a result is sent whatever it is, and a long result is cut and hashed", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server);
  const results: unknown[] = [undefined, "text", new Set([1n]), NaN, new Error("broken"), new Uint8Array([1, 2]), { at: new Date(0) }, Symbol("s")];
  for (const result of results) assert.equal((await gate.toolResult({ ...CALL, result })).code, "allow");
  assert.deepEqual(server.events.map(({ result }) => result), [null, "text", ["1"], "NaN", { error: "broken" }, [1, 2], { at: "1970-01-01T00:00:00.000Z" }, "[symbol]"]);
  for (const letter of ["a", "a", "b"]) await gate.toolResult({ ...CALL, result: "x".repeat(5_000_000) + letter });
  const [one, same, other] = server.events.slice(-3).map(({ result }) => String(result));
  assert.match(one ?? "", /cut by the client: 5000001 UTF-16 units, sha256:[0-9a-f]{64}\]$/);
  assert.ok((one ?? "").length < 20_000);
  assert.equal(one, same);
  assert.notEqual(one, other);
});

test("an event that breaks a rule is not sent, whatever the gate does on failure", async () => {
  await using server = await FakeGate.start();
  const gate = gateTo(server, { onFailure: "open" });
  for (const [change, message] of [
    [{ thread_id: "" }, /thread_id is an empty string/],
    [{ thread_id: `${"é".repeat(128)}x` }, /thread_id is longer than 256 bytes/],
    [{ event_id: "x".repeat(129) }, /event_id is longer than 128 bytes/],
    [{ tool_call_id: undefined }, /tool_call_id is missing/],
    [{ tool_name: 7 }, /tool_name is a number/],
    [{ arguments: "{}" }, /tool_input and arguments are both there/],
    [{ tool_input: ["ls"] }, /tool_input is an array/],
    [{ tool_input: undefined, arguments: {} }, /arguments is an object/],
  ] as const) {
    const verdict = await gate.toolCall({ ...CALL, ...change } as ToolCall);
    assert.equal(verdict.code, "invalid_event");
    assert.equal(verdict.allows_execution, false);
    assert.match(verdict.message, message);
  }
  assert.equal(server.requests.length, 0);
});

test("options without a meaning are refused by name", () => {
  for (const [options, name] of [
    [{ url: "localhost:7878" }, /url/],
    [{ url: "http://user:pw@h" }, /credentials/],
    [{ url: "http://h/?a=1" }, /query/],
    [{ deadlineMs: 0 }, /deadlineMs/],
    [{ deadlineMs: NaN }, /deadlineMs/],
    [{ deadlineMs: 3e9 }, /deadlineMs/],
    [{ inFlightMax: 0 }, /inFlightMax/],
    [{ token: "" }, /token/],
    [{ token: "s3cret\n" }, /line break/],
    [{ onFailure: "ajar" as "open" }, /onFailure/],
  ] as const) {
    assert.throws(() => new Gate(options), name);
  }
  assert.ok(new Gate({ url: "http://h/prefix" }));
});

test("the trace of the caller goes along", async () => {
  await using server = await FakeGate.start();
  propagation.setGlobalPropagator({
    inject: (active, carrier, setter) => { setter.set(carrier, "traceparent", `00-${trace.getSpanContext(active)?.traceId ?? "none"}-01`); },
    extract: (active) => active,
    fields: () => ["traceparent"],
  });
  const active = trace.setSpanContext(context.active(), { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", traceFlags: 1 });
  context.setGlobalContextManager({
    active: () => active,
    with: (_, run, self, ...args) => run.call(self, ...args),
    bind: (_, target) => target,
    enable() { return this; },
    disable() { return this; },
  });
  await gateTo(server).toolCall(CALL);
  assert.equal(server.requests[0]?.headers["traceparent"], "00-4bf92f3577b34da6a3ce929d0e0e4736-01");
  context.disable();
  propagation.disable();
});

test("a tracer that fails, or gives what no header holds, decides about no call", async () => {
  await using server = await FakeGate.start();
  for (const inject of [() => { throw new Error("disk full"); }, (_: unknown, carrier: unknown) => { (carrier as Record<string, string>)["tracestate"] = "a\nb"; }]) {
    propagation.setGlobalPropagator({ inject, extract: (active) => active, fields: () => [] });
    assert.equal((await gateTo(server).toolCall(CALL)).code, "allow");
    propagation.disable();
  }
});

/** The middleware of LangChain, in a real agent with a model that follows a script. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Command, MemorySaver, interrupt } from "@langchain/langgraph";
import { Gate, type GateOptions } from "@tollgate/client";
import { tollgateMiddleware, type TollgateOptions } from "@tollgate/client/langchain";
import { AIMessage, ToolMessage, createAgent, fakeModel, tool, toolRetryMiddleware, type BaseMessage } from "langchain";
import { z } from "zod";

import { FakeGate, json, suppressed } from "./support/fake_gate.js";

const schema = z.object({ command: z.string() });
const CONFIG = { configurable: { thread_id: "t1" } };
const GO = { messages: [{ role: "user" as const, content: "go" }] };

function call(id: string, args: Record<string, unknown> = { command: "ls" }) {
  return { name: "bash", args, id };
}

/** A tool that keeps the ids of the calls that ran. */
function bash(ran: string[], result: (command: string) => unknown = () => "done") {
  const run = (input: { command: string }, { toolCallId }: { toolCallId?: string }): unknown => {
    ran.push(String(toolCallId));
    return result(input.command);
  };
  return tool(run as never, { name: "bash", description: "runs a command", schema });
}

function gateTo(server: FakeGate | string, options: GateOptions = {}): Gate {
  return new Gate({ url: typeof server === "string" ? server : server.url, deadlineMs: 30_000, log: () => undefined, ...options });
}

interface Run {
  model: ReturnType<typeof fakeModel>;
  tools: ReturnType<typeof bash>[];
  options?: TollgateOptions;
  gateOptions?: GateOptions;
}

async function run(server: FakeGate | string, { model, tools, options, gateOptions }: Run): Promise<BaseMessage[]> {
  const agent = createAgent({ model, tools, middleware: [tollgateMiddleware(gateTo(server, gateOptions), options)] });
  return (await agent.invoke(GO, CONFIG)).messages;
}

/** Returns the results that the model was shown. */
function results(messages: BaseMessage[]) {
  return messages.filter((message) => ToolMessage.isInstance(message)).map(({ content, status }) => [content, status]);
}

test("an allowed call runs, and everything is reported in order, in one turn", async () => {
  await using server = await FakeGate.start();
  const ran: string[] = [];
  const model = fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("ok"));
  const messages = await run(server, { model, tools: [bash(ran)] });
  assert.equal(messages.at(-1)?.content, "ok");
  assert.deepEqual(ran, ["c1"]);
  assert.deepEqual(server.events.map(({ type }) => type), ["turn_start", "model_response", "tool_call", "tool_result", "model_response", "turn_end"]);
  assert.equal(new Set(server.events.map(({ turn_id }) => turn_id)).size, 1);
  assert.deepEqual([...new Set(server.events.map(({ thread_id }) => thread_id))], ["t1"]);
  const named = `${String(server.events[0]?.["turn_id"])}/${String(messages[1]?.id)}/c1`;
  assert.partialDeepStrictEqual(server.of("tool_call")[0], { event_id: `${named}/call`, tool_name: "bash", tool_input: { command: "ls" } });
  assert.partialDeepStrictEqual(server.of("tool_result")[0], { event_id: `${named}/result`, result: "done" });
  assert.partialDeepStrictEqual(server.of("model_response")[0]?.["message"], { type: "ai", data: { tool_calls: [{ name: "bash", id: "c1" }] } });
});

test("a blocked call does not run, and the model reads the verdict's text", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_call" ? { action: "block", code: "no", synthetic_result: "denied: use another tool" } : undefined);
  const ran: string[] = [];
  const model = fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("ok"));
  const messages = await run(server, { model, tools: [bash(ran)] });
  assert.deepEqual(ran, []);
  assert.deepEqual(results(messages), [["denied: use another tool", "error"]]);
  assert.equal(server.of("tool_result").length, 0);
  assert.equal(messages.at(-1)?.content, "ok");
});

test("guidance is appended to a result", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_result" ? { action: "warn", code: "w", guidance: "\n\n[look]" } : undefined);
  const blocks = (id: string) => new ToolMessage({ content: [{ type: "text", text: "b" }], tool_call_id: id });
  const update = (id: string) => new Command({ update: { messages: [new ToolMessage({ content: "c", tool_call_id: id })] } });
  const made: Record<string, unknown> = { text: "a", blocks: blocks("c2"), command: update("c3") };
  const calls = ["text", "blocks", "command"].map((command, at) => call(`c${at + 1}`, { command }));
  const model = fakeModel().respondWithTools(calls).respond(new AIMessage("ok"));
  const messages = await run(server, { model, tools: [bash([], (command) => made[command])] });
  const shown = results(messages).map(([content]) => content);
  assert.deepEqual(shown, ["a\n\n[look]", [{ type: "text", text: "b" }, { type: "text", text: "\n\n[look]" }], "c\n\n[look]"]);
});

test("a tool that throws is reported as failed, and the run goes on", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_result" ? { action: "warn", code: "w", guidance: "\n\n[look]" } : undefined);
  const model = fakeModel().respondWithTools([call("c1")]).respondWithTools([call("c2", { wrong: 1 })]).respond(new AIMessage("ok"));
  const messages = await run(server, { model, tools: [bash([], () => { throw new Error("broken"); })] });
  assert.deepEqual(server.of("tool_result").map(({ failed }) => failed), [true, true]);
  assert.deepEqual(server.of("tool_result")[0]?.["result"], { error: "broken" });
  assert.deepEqual(results(messages)[0], ["Error: broken\n Please fix your mistakes.\n\n[look]", "error"]);
  assert.match(JSON.stringify(results(messages)[1]), /schema.*\[look\]","error"/);
});

test("a middleware that retries counts one call, once its error is let through", async () => {
  await using server = await FakeGate.start();
  let attempts = 0;
  const flaky = bash([], () => {
    attempts += 1;
    if (attempts < 3) throw new Error("busy");
    return "done";
  });
  const model = fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("ok"));
  const middleware = [toolRetryMiddleware({ maxRetries: 3, initialDelayMs: 0 }), tollgateMiddleware(gateTo(server), { toolErrors: "throw" })];
  await createAgent({ model, tools: [flaky], middleware }).invoke(GO, CONFIG);
  assert.equal(attempts, 3);
  assert.equal(new Set(server.of("tool_call").map(({ event_id }) => event_id)).size, 1);
});

test("a halt ends the run: the model is not called again", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_result" ? { action: "halt", code: "h", message: "Stopped bash: it repeats." } : undefined);
  const model = fakeModel().respondWithTools([call("c1"), call("c2")]).respondWithTools([call("c3")]).respond(new AIMessage("never"));
  const messages = await run(server, { model, tools: [bash([])] });
  assert.equal(model.callCount, 1);
  assert.equal(messages.at(-1)?.content, "Stopped bash: it repeats.");
  assert.equal(server.of("turn_end").length, 1);
});

test("a block that stops the turn ends the run", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_call" ? { action: "block", code: "b", message: "Blocked bash.", should_halt: true } : undefined);
  const ran: string[] = [];
  const model = fakeModel().respondWithTools([call("c1")]).respondWithTools([call("c2")]);
  const messages = await run(server, { model, tools: [bash(ran)] });
  assert.equal(messages.at(-1)?.content, "Blocked bash.");
  assert.deepEqual(ran, []);
  assert.equal(model.callCount, 1);
});

test("a halted turn does not end the thread's next turn", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_result" && server.of("turn_start").length === 1 ? { action: "halt", code: "h", message: "Stopped." } : undefined);
  const model = fakeModel().respondWithTools([call("c1")]).respondWithTools([call("c2")]).respond(new AIMessage("ok"));
  const agent = createAgent({ model, tools: [bash([])], middleware: [tollgateMiddleware(gateTo(server))], checkpointer: new MemorySaver() });
  assert.equal((await agent.invoke(GO, CONFIG)).messages.at(-1)?.content, "Stopped.");
  assert.equal((await agent.invoke(GO, CONFIG)).messages.at(-1)?.content, "ok");
  assert.equal(new Set(server.of("turn_start").map(({ turn_id }) => turn_id)).size, 2);
});

test("the calls of a suppressed response do not run, and the message is rewritten in place", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "model_response" ? suppressed({}) : undefined);
  const ran: string[] = [];
  const answer = new AIMessage({ id: "m1", content: "par", tool_calls: [call("c1")], response_metadata: { finish_reason: "content_filter" } });
  const messages = await run(server, { model: fakeModel().respond(answer), tools: [bash(ran)] });
  assert.deepEqual(ran, []);
  assert.equal(messages.length, 2);
  const last = messages.at(-1) as AIMessage;
  assert.equal(last.id, "m1");
  assert.equal(last.content, "par\n\nThe provider stopped this.");
  assert.deepEqual(last.tool_calls, []);
  assert.partialDeepStrictEqual(last.additional_kwargs, { safety_termination: { detector: "native" } });
  assert.deepEqual(last.response_metadata, { finish_reason: "content_filter" });
});

test("calls in parallel are decided one by one", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ tool_call_id, type }) => (type === "tool_call" && tool_call_id === "c2" ? { action: "block", code: "no" } : undefined);
  const ran: string[] = [];
  const model = fakeModel().respondWithTools([call("c1"), call("c2"), call("c3")]).respond(new AIMessage("ok"));
  const messages = await run(server, { model, tools: [bash(ran)] });
  assert.deepEqual(ran.sort(), ["c1", "c3"]);
  assert.equal(results(messages).length, 3);
});

test("equal calls of two answers are two events", async () => {
  await using server = await FakeGate.start();
  const model = fakeModel().respondWithTools([call("c1")]).respondWithTools([call("c1")]).respond(new AIMessage("ok"));
  await run(server, { model, tools: [bash([])] });
  for (const type of ["tool_call", "tool_result"]) assert.equal(new Set(server.of(type).map(({ event_id }) => event_id)).size, 2);
});

test("a run that is resumed asks under the same turn and id", async () => {
  await using server = await FakeGate.start();
  const model = fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("ok"));
  const ask = bash([], () => interrupt("may I?"));
  const agent = createAgent({ model, tools: [ask], middleware: [tollgateMiddleware(gateTo(server))], checkpointer: new MemorySaver() });
  await agent.invoke(GO, CONFIG);
  assert.equal(server.of("tool_result").length, 0, "an interrupt is no result");
  const { messages } = await agent.invoke(new Command({ resume: "yes" }), CONFIG);
  assert.equal(messages.at(-1)?.content, "ok");
  assert.deepEqual(results(messages), [["yes", "success"]]);
  assert.equal(server.of("tool_call").length, 2);
  assert.equal(new Set(server.of("tool_call").map(({ event_id }) => event_id)).size, 1);
  assert.equal(server.of("turn_start").length, 1);
});

for (const name of [undefined, "research"]) {
  test(`a subagent has a thread of its own, ${name === undefined ? "told from the namespace" : "by name"}`, async () => {
    await using server = await FakeGate.start();
    const gate = gateTo(server);
    const ran: string[] = [];
    const inner = createAgent({
      model: fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("found")),
      tools: [bash(ran)],
      middleware: [tollgateMiddleware(gate, name === undefined ? {} : { subagent: name })],
    });
    const delegate = bash([], async () => (await inner.invoke(GO)).messages.at(-1)?.content);
    const model = fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("ok"));
    await createAgent({ model, tools: [delegate], middleware: [tollgateMiddleware(gate)] }).invoke(GO, CONFIG);
    assert.deepEqual(ran, ["c1"]);
    const [outer, child] = server.of("tool_call");
    assert.equal(outer?.thread_id, "t1");
    assert.equal(outer["is_subagent"], undefined);
    assert.match(child?.thread_id ?? "", name === undefined ? /^t1\/tools:[^/]+$/ : /^t1\/research$/);
    assert.equal(child?.["is_subagent"], true);
    assert.notEqual(child["turn_id"], outer["turn_id"]);
  });
}

test("who acts is told from what the caller configured", async () => {
  await using server = await FakeGate.start();
  const options = { attribution: ({ user }: Record<string, unknown>) => ({ user_id: String(user) }) };
  const agent = createAgent({ model: fakeModel().respond(new AIMessage("ok")), tools: [], middleware: [tollgateMiddleware(gateTo(server), options)] });
  await agent.invoke(GO, { configurable: { thread_id: "t1", user: "u7" } });
  assert.deepEqual([...new Set(server.events.map(({ user_id }) => user_id))], ["u7"]);
});

for (const failure of ["absent", "html", "reset", "hang"] as const) {
  test(`no tool runs when the gate fails: ${failure}`, async () => {
    await using server = await FakeGate.start();
    server.fault = (response) => {
      if (failure === "html") response.writeHead(200, { "content-type": "text/html" }).end("<html>");
      if (failure === "reset") response.destroy();
      return true;
    };
    const ran: string[] = [];
    const model = fakeModel().respondWithTools([call("c1")]).respondWithTools([call("c2")]);
    const gateOptions = { deadlineMs: failure === "hang" ? 100 : 30_000 };
    const messages = await run(failure === "absent" ? "http://127.0.0.1:1" : server, { model, tools: [bash(ran)], gateOptions });
    assert.deepEqual(ran, []);
    assert.match(JSON.stringify(messages.at(-1)?.content), /Not allowed:/);
    assert.equal(model.callCount, 1);
  });
}

test("an answer without calls stays as it is when no gate listens, or when the gate cannot read it", async () => {
  await using server = await FakeGate.start();
  server.rule = () => ({ action: "block", code: "invalid_event", decided_by: "envelope" });
  for (const gate of ["http://127.0.0.1:1", server]) {
    const messages = await run(gate, { model: fakeModel().respond(new AIMessage("hello")), tools: [] });
    assert.equal(messages.at(-1)?.content, "hello");
  }
});

test("no tool runs when only its own question fails, and the model reads why", async () => {
  await using server = await FakeGate.start();
  server.fault = (response, { body }) => (body as { type: string }).type === "tool_call" && json(response, 200, { allows_execution: true });
  const ran: string[] = [];
  const model = fakeModel().respondWithTools([call("c1")]).respond(new AIMessage("ok"));
  const messages = await run(server, { model, tools: [bash(ran)] });
  assert.deepEqual(ran, []);
  assert.match(JSON.stringify(results(messages)[0]), /not executed \(verdict_unreadable\)/);
  assert.equal(messages.at(-1)?.content, "ok");
});

test("no tool runs when the adapter's own code throws", async () => {
  await using server = await FakeGate.start();
  const ran: string[] = [];
  const options = { attribution: () => { throw new Error("a bug"); } };
  const model = fakeModel().respondWithTools([call("c1")]);
  await assert.rejects(run(server, { model, tools: [bash(ran)], options }), /a bug/);
  assert.deepEqual(ran, []);
});

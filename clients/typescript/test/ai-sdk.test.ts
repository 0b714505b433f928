/** The adapter of the Vercel AI SDK, in the real SDK with a model that follows a script. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Gate, type GateOptions, type Turn } from "@tollgate/client";
import { gated } from "@tollgate/client/ai-sdk";
import { generateText, isStepCount, simulateReadableStream, streamText, tool, type ToolSet } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

import { FakeGate, json, suppressed } from "./support/fake_gate.js";

type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type StreamPart = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
type Finish = Generated["finishReason"]["unified"];

const usage: Generated["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** One answer of the model: calls of the tool `bash` with these ids, or a text. */
interface Answer {
  calls?: string[];
  text?: string;
  finish?: Finish;
  /** The provider's id of the answer. */
  id?: string;
}

function finishReason({ calls, finish }: Answer): Generated["finishReason"] {
  const unified = finish ?? (calls === undefined ? "stop" : "tool-calls");
  return { unified, raw: unified };
}

function parts({ calls = [], text }: Answer): Generated["content"] {
  const called = calls.map((toolCallId) => ({ type: "tool-call" as const, toolCallId, toolName: "bash", input: '{"command":"ls"}' }));
  return [...(text === undefined ? [] : [{ type: "text" as const, text }]), ...called];
}

function modelOf(...answers: Answer[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: answers.map((answer) => ({ content: parts(answer), finishReason: finishReason(answer), usage, warnings: [], ...(answer.id === undefined ? {} : { response: { id: answer.id } }) })),
    doStream: answers.map((answer) => ({
      stream: simulateReadableStream<StreamPart>({
        chunks: [
          { type: "stream-start" as const, warnings: [] },
          { type: "response-metadata" as const, ...(answer.id === undefined ? {} : { id: answer.id }) },
          ...parts(answer).flatMap((part): StreamPart[] =>
            part.type === "tool-call"
              ? [{ type: "tool-input-start" as const, id: part.toolCallId, toolName: "bash" }, { type: "tool-input-end" as const, id: part.toolCallId }, part]
              : [{ type: "text-start" as const, id: "0" }, { type: "text-delta" as const, id: "0", delta: answer.text ?? "" }, { type: "text-end" as const, id: "0" }],
          ),
          { type: "finish" as const, finishReason: finishReason(answer), usage },
        ],
        initialDelayInMs: null,
        chunkDelayInMs: null,
      }),
    })),
  });
}

/** A tool that keeps what it ran with. */
function bash(ran: string[], result: () => unknown = () => "done"): ToolSet {
  return {
    bash: tool({
      inputSchema: z.object({ command: z.string() }),
      execute: async (_, { toolCallId }) => {
        ran.push(toolCallId);
        return result();
      },
    }),
  };
}

async function run(server: FakeGate | string, model: MockLanguageModelV4, tools: ToolSet, options: GateOptions = {}) {
  const url = typeof server === "string" ? server : server.url;
  const gate = new Gate({ url, deadlineMs: 30_000, log: () => undefined, ...options });
  return await gate.turn({ thread_id: "t1", turn_id: "u1" }, (turn) => generateText({ ...gated(turn, { model, tools }), prompt: "go", stopWhen: isStepCount(10), maxRetries: 0 }));
}

/** Returns what the model was shown as the output of each call, in its last prompt. */
function shown(model: MockLanguageModelV4): unknown[] {
  const prompt = model.doGenerateCalls.at(-1)?.prompt ?? [];
  return prompt.flatMap((message) => (message.role === "tool" ? message.content.flatMap((part) => (part.type === "tool-result" ? [part.output] : [])) : []));
}

test("an allowed call runs, and everything is reported in order", async () => {
  await using server = await FakeGate.start();
  const ran: string[] = [];
  const model = modelOf({ calls: ["c1"] }, { text: "ok" });
  assert.equal((await run(server, model, bash(ran))).text, "ok");
  assert.deepEqual(ran, ["c1"]);
  assert.deepEqual(server.events.map(({ type }) => type), ["turn_start", "model_response", "tool_call", "tool_result", "model_response", "turn_end"]);
  assert.partialDeepStrictEqual(server.of("tool_call")[0], { thread_id: "t1", turn_id: "u1", event_id: "u1/c1/call", tool_name: "bash", tool_input: { command: "ls" } });
  assert.partialDeepStrictEqual(server.of("tool_result")[0], { event_id: "u1/c1/result", result: "done" });
  assert.deepEqual(server.of("model_response")[0]?.["response"], { text: "", toolCalls: [{ type: "tool-call", toolCallId: "c1", toolName: "bash" }], finishReason: { unified: "tool-calls", raw: "tool-calls" } });
  assert.deepEqual(shown(model), [{ type: "text", value: "done" }]);
});

test("a blocked call does not run, and the model reads the verdict's text", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_call" ? { action: "block", code: "no", synthetic_result: "denied: use another tool" } : undefined);
  const ran: string[] = [];
  const model = modelOf({ calls: ["c1"] }, { text: "ok" });
  assert.equal((await run(server, model, bash(ran))).text, "ok");
  assert.deepEqual(ran, []);
  assert.deepEqual(shown(model), [{ type: "error-text", value: "denied: use another tool" }]);
  assert.equal(server.of("tool_result").length, 0);
});

for (const [kind, result, expected] of [
  ["a text", () => "done", { type: "text", value: "done\n\n[look]" }],
  ["an object", () => ({ n: 1 }), { type: "text", value: '{"n":1}\n\n[look]' }],
  ["nothing", () => undefined, { type: "text", value: "null\n\n[look]" }],
  ["an error", () => { throw new RangeError("broken"); }, { type: "error-text", value: "RangeError: broken\n\n[look]" }],
] as const) {
  test(`guidance is appended to ${kind}`, async () => {
    await using server = await FakeGate.start();
    server.rule = ({ type }) => (type === "tool_result" ? { action: "warn", code: "w", guidance: "\n\n[look]" } : undefined);
    const model = modelOf({ calls: ["c1"] }, { text: "ok" });
    await run(server, model, bash([], result));
    assert.deepEqual(shown(model), [expected]);
    assert.equal(server.of("tool_result")[0]?.["failed"], kind === "an error" ? true : undefined);
  });
}

test("a halt ends the run: the model is not called again", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_result" ? { action: "halt", code: "h", message: "Stopped bash: it repeats." } : undefined);
  const ran: string[] = [];
  const model = modelOf({ calls: ["c1"] }, { calls: ["c2"] }, { calls: ["c3"] });
  const { text, rawFinishReason } = await run(server, model, bash(ran));
  assert.deepEqual(ran, ["c1"]);
  assert.equal(model.doGenerateCalls.length, 1);
  assert.equal(text, "Stopped bash: it repeats.");
  assert.equal(rawFinishReason, "tollgate_halt");
});

test("a block that stops the turn ends the run", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_call" ? { action: "block", code: "b", message: "Blocked bash.", should_halt: true } : undefined);
  const ran: string[] = [];
  const model = modelOf({ calls: ["c1"] }, { calls: ["c2"] });
  assert.equal((await run(server, model, bash(ran))).text, "Blocked bash.");
  assert.deepEqual(ran, []);
  assert.equal(model.doGenerateCalls.length, 1);
});

test("the calls of a suppressed response do not run and leave the history", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "model_response" ? suppressed({}) : undefined);
  const ran: string[] = [];
  const result = await run(server, modelOf({ text: "par", calls: ["c1"], finish: "tool-calls" }), bash(ran));
  assert.deepEqual(ran, []);
  assert.equal(result.text, "par\n\nThe provider stopped this.");
  assert.equal(result.finishReason, "content-filter");
  assert.ok(!JSON.stringify(result.finalStep.response.messages).includes("tool-call"));
});

test("of a response with flagged calls the others run", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) =>
    type === "model_response" ? suppressed({ category: "tool_flagged" }) : undefined;
  const ran: string[] = [];
  await run(server, modelOf({ calls: ["c1", "c2"] }, { text: "ok" }), bash(ran));
  assert.deepEqual(ran, ["c2"]);
});

test("calls in parallel are asked at once and decided one by one", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ tool_call_id, type }) => (type === "tool_call" && tool_call_id === "c2" ? { action: "block", code: "no" } : undefined);
  const ran: string[] = [];
  const model = modelOf({ calls: ["c1", "c2", "c3"] }, { text: "ok" });
  await run(server, model, bash(ran));
  assert.deepEqual(ran.sort(), ["c1", "c3"]);
  assert.equal(shown(model).length, 3);
});

for (const [failure, server] of [
  ["is not there", "http://127.0.0.1:1"],
  ["answers with HTML", "html"],
  ["breaks the connection", "reset"],
  ["does not answer", "hang"],
] as const) {
  test(`no tool runs when the gate ${failure}`, async () => {
    await using fake = await FakeGate.start();
    fake.fault = (response) => {
      if (server === "html") response.writeHead(200, { "content-type": "text/html" }).end("<html>");
      if (server === "reset") response.destroy();
      return true;
    };
    const ran: string[] = [];
    const url = server.startsWith("http:") ? server : fake.url;
    const { text } = await run(url, modelOf({ calls: ["c1"] }, { calls: ["c2"] }), bash(ran), { deadlineMs: server === "hang" ? 100 : 30_000 });
    assert.deepEqual(ran, []);
    assert.match(text, /Not allowed:/);
  });
}

test("an answer without calls stays as it is when no gate listens, or when the gate cannot read it", async () => {
  assert.equal((await run("http://127.0.0.1:1", modelOf({ text: "hello" }), {})).text, "hello");
  await using server = await FakeGate.start();
  server.rule = () => ({ action: "block", code: "invalid_event", decided_by: "envelope" });
  assert.equal((await run(server, modelOf({ text: "hello" }), {})).text, "hello");
  assert.equal((await streamed(server, modelOf({ text: "hello" }), {})).text, "hello");
});

test("no tool runs when only its own question fails", async () => {
  await using server = await FakeGate.start();
  server.fault = (response, { body }) => (body as { type: string }).type === "tool_call" && json(response, 200, { allows_execution: true });
  const ran: string[] = [];
  const model = modelOf({ calls: ["c1"] }, { text: "ok" });
  assert.equal((await run(server, model, bash(ran))).text, "ok");
  assert.deepEqual(ran, []);
  assert.match(JSON.stringify(shown(model)), /not executed \(verdict_unreadable\)/);
});

test("no tool runs when the adapter's own code throws", async () => {
  const ran: string[] = [];
  const turn = {
    halted: undefined,
    modelResponse: () => Promise.resolve({ allows_execution: true }),
    toolCall: () => Promise.reject(new Error("a bug")),
  } as unknown as Turn;
  await generateText({ ...gated(turn, { model: modelOf({ calls: ["c1"] }), tools: bash(ran) }), prompt: "go" });
  assert.deepEqual(ran, []);
});

async function streamed(server: FakeGate, model: MockLanguageModelV4, tools: ToolSet) {
  const gate = new Gate({ url: server.url, deadlineMs: 30_000, log: () => undefined });
  return await gate.turn("t1", async (turn) => {
    const result = streamText({ ...gated(turn, { model, tools }), prompt: "go", stopWhen: isStepCount(10), onError: () => undefined });
    const types: string[] = [];
    for await (const part of result.stream) types.push(part.type);
    return { types, text: await result.text };
  });
}

test("a stream shows calls after the verdict, and runs them", async () => {
  await using server = await FakeGate.start();
  const ran: string[] = [];
  const { types, text } = await streamed(server, modelOf({ text: "a", calls: ["c1"] }, { text: "ok" }), bash(ran));
  assert.deepEqual(ran, ["c1"]);
  assert.equal(text, "ok");
  assert.ok(types.indexOf("text-end") < types.indexOf("tool-call"));
});

test("a suppressed stream shows no call", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "model_response" ? suppressed({ user_message: "stopped" }) : undefined);
  const ran: string[] = [];
  const { types, text } = await streamed(server, modelOf({ text: "a", calls: ["c1"] }), bash(ran));
  assert.deepEqual(ran, []);
  assert.ok(!types.some((type) => type.startsWith("tool-")), types.join());
  assert.equal(text, "a\n\nstopped");
});

test("a stream that breaks off runs no call", async () => {
  await using server = await FakeGate.start();
  const ran: string[] = [];
  const chunks: StreamPart[] = [{ type: "stream-start", warnings: [] }, { type: "tool-call", toolCallId: "c1", toolName: "bash", input: '{"command":"ls"}' }];
  const model = new MockLanguageModelV4({ doStream: { stream: simulateReadableStream<StreamPart>({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) } });
  await streamed(server, model, bash(ran)).catch(() => undefined);
  assert.deepEqual(ran, []);
  assert.equal(server.of("tool_call").length, 0);
});

test("a halted stream ends", async () => {
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_result" ? { action: "halt", code: "h", message: "Stopped." } : undefined);
  const model = modelOf({ calls: ["c1"] }, { calls: ["c2"] });
  assert.equal((await streamed(server, model, bash([]))).text, "Stopped.");
  assert.equal(model.doStreamCalls.length, 1);
});

test("the outputs of a streaming tool come before its result is reported", async () => {
  await using server = await FakeGate.start();
  const outputs = {
    bash: tool({
      inputSchema: z.object({ command: z.string() }),
      execute: async function* () {
        yield "one";
        yield "two";
      },
    }),
  };
  const { types } = await streamed(server, modelOf({ calls: ["c1"] }, { text: "ok" }), outputs);
  assert.equal(types.filter((type) => type === "tool-result").length, 3);
  assert.equal(server.of("tool_result")[0]?.["result"], "two");
});

test("a subagent's calls are on a thread of their own", async () => {
  await using server = await FakeGate.start();
  const gate = new Gate({ url: server.url, deadlineMs: 30_000 });
  const ran: string[] = [];
  await gate.turn("t1", async (turn) => {
    const research = tool({
      inputSchema: z.object({ command: z.string() }),
      execute: async () =>
        await turn.subagent("research", async (child) => (await generateText({ ...gated(child, { model: modelOf({ calls: ["c1"] }, { text: "found" }), tools: bash(ran) }), prompt: "go", stopWhen: isStepCount(3) })).text),
    });
    return await generateText({ ...gated(turn, { model: modelOf({ calls: ["c1"] }, { text: "ok" }), tools: { bash: research } }), prompt: "go", stopWhen: isStepCount(3) });
  });
  assert.deepEqual(server.of("tool_call").map(({ thread_id, is_subagent }) => [thread_id, is_subagent]), [["t1", undefined], ["t1/research", true]]);
  assert.deepEqual(ran, ["c1"]);
});

test("a repeat of a turn asks under the same ids", async () => {
  await using server = await FakeGate.start();
  for (let round = 0; round < 2; round += 1) await run(server, modelOf({ calls: ["c1"] }, { text: "ok" }), bash([]));
  const ids = server.of("tool_call").map(({ event_id }) => event_id);
  assert.deepEqual(ids, ["u1/c1/call", "u1/c1/call"]);
});

for (const isStream of [false, true]) {
  test(`equal calls of two answers are two events, ${isStream ? "streamed" : "whole"}`, async () => {
    await using server = await FakeGate.start();
    const ran: string[] = [];
    const model = modelOf({ calls: ["c1"], id: "r1" }, { calls: ["c1"], id: "r2" }, { text: "ok" });
    const gate = new Gate({ url: server.url, deadlineMs: 30_000, log: () => undefined });
    await gate.turn({ thread_id: "t1", turn_id: "u1" }, async (turn) => {
      const asked = { ...gated(turn, { model, tools: bash(ran) }), prompt: "go", stopWhen: isStepCount(10) };
      return isStream ? await streamText(asked).text : (await generateText(asked)).text;
    });
    assert.equal(ran.length, 2);
    assert.deepEqual(server.of("tool_call").map(({ event_id }) => event_id), ["u1/r1/c1/call", "u1/r2/c1/call"]);
    assert.deepEqual(server.of("tool_result").map(({ event_id }) => event_id), ["u1/r1/c1/result", "u1/r2/c1/result"]);
  });
}

test("an error of the provider is reported and stays the error", async () => {
  await using server = await FakeGate.start();
  const error = Object.assign(new Error("400"), { responseBody: '{"error":{"code":"content_filter"}}' });
  const model = new MockLanguageModelV4({ doGenerate: () => Promise.reject(error) });
  await assert.rejects(run(server, model, {}), error);
  assert.deepEqual(server.of("model_response")[0]?.["error"], { error: { code: "content_filter" } });
});

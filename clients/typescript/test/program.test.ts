/**
 * The client and the real program, which `TOLLGATE_BIN` names. Without it these cases are skipped, and fail where `CI` is set: there a case that
 * is skipped would look like a case that passed.
 */

import assert from "node:assert/strict";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { test, type TestContext } from "node:test";

import { Gate } from "@tollgate/client";
import { gated } from "@tollgate/client/ai-sdk";
import { tollgateMiddleware } from "@tollgate/client/langchain";
import { generateText, isStepCount } from "ai";
import { createAgent } from "langchain";

import { readVerdict, type WireEvent } from "../src/wire.js";
import { FakeGate } from "./support/fake_gate.js";
import * as vercel from "./support/yours.ai-sdk.js";
import * as langchain from "./support/yours.langchain.js";

const PROGRAM = process.env["TOLLGATE_BIN"];
const POLICY = `
guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}
tool_loop_guardrails: {preset: tollgate}
`;

function programOrSkip(context: TestContext): string | undefined {
  if (PROGRAM !== undefined) return PROGRAM;
  assert.equal(process.env["CI"], undefined, "TOLLGATE_BIN does not name the program");
  context.skip("TOLLGATE_BIN does not name the program");
  return undefined;
}

type Program = ChildProcessByStdio<Writable, Readable, Readable>;

/** Starts the program under the policy. Returns the process, and what it has printed so far. */
function start(program: string, context: TestContext, words: string[]): { child: Program; printed: { out: string; err: string }; ended: Promise<unknown> } {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-client-"));
  writeFileSync(join(folder, "policy.yaml"), POLICY);
  const child = spawn(program, [...words, "--config", join(folder, "policy.yaml")], { stdio: ["pipe", "pipe", "pipe"], cwd: folder });
  const printed = { out: "", err: "" };
  child.stdout.on("data", (chunk: Buffer) => (printed.out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (printed.err += chunk.toString()));
  const ended = new Promise((resolve) => child.on("close", resolve));
  context.after(async () => {
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
  });
  return { child, printed, ended };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Runs an agent of each framework on a thread of its own. Returns what the agents answer last. */
async function agents(gate: Gate): Promise<string[]> {
  const { text } = await gate.turn("ai-sdk", (turn) => generateText({ ...gated(turn, vercel), prompt: "List my files.", stopWhen: isStepCount(5) }));
  const agent = createAgent({ ...langchain, middleware: [tollgateMiddleware(gate)] });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "List my files." }] }, { configurable: { thread_id: "langchain" } });
  return [text, messages.at(-1)?.text ?? ""];
}

test("the gate reads every event of the adapters, and the client every verdict of the gate", async (context) => {
  const program = programOrSkip(context);
  if (program === undefined) return;
  await using server = await FakeGate.start();
  server.rule = ({ type }) => (type === "tool_call" ? { action: "block", code: "no" } : undefined);
  const gate = new Gate({ url: server.url, deadlineMs: 30_000 });
  await agents(gate);
  await gate.turn("plain", async (turn) => {
    const call = { tool_call_id: "c1", tool_name: "read_file", tool_input: { path: "a" } };
    await turn.toolCall(call);
    await turn.toolResult({ ...call, result: new Error("no such file"), failed: true });
    await turn.subagent("child", (child) => child.toolCall(call));
    await turn.modelResponse({ response: { choices: [{ finish_reason: "content_filter", message: { role: "assistant", content: null, tool_calls: [{ id: "c2", type: "function", function: { name: "bash", arguments: "{" } }] } }] } });
    await turn.toolCall({ ...call, tool_call_id: "c2", tool_name: "bash" });
  });
  const { child, printed, ended } = start(program, context, ["eval"]);
  child.stdin.end(server.events.map((event) => JSON.stringify(event)).join("\n"));
  assert.equal(await ended, 0, printed.err);
  const asked = server.events.filter(({ type }) => !type.startsWith("turn_"));
  const verdicts = printed.out.trim().split("\n").map((line, at) => readVerdict(JSON.parse(line), asked[at] as unknown as WireEvent));
  assert.equal(verdicts.length, asked.length);
  const codes = verdicts.map((verdict) => (typeof verdict === "string" ? verdict : verdict.code));
  assert.deepEqual(codes, ["allow", "oap.tool_not_allowed", "allow", "allow", "oap.tool_not_allowed", "allow", "allow", "allow", "allow", "safety_terminated", "suppressed_tool_call"]);
});

test("agents are gated by the program itself over HTTP", async (context) => {
  const program = programOrSkip(context);
  if (program === undefined) return;
  const port = await freePort();
  const { printed, ended } = start(program, context, ["dev", "--http", `127.0.0.1:${port}`]);
  const gate = new Gate({ url: `http://127.0.0.1:${port}`, deadlineMs: 20_000, log: () => undefined });
  let isRunning = true;
  void ended.then(() => (isRunning = false));
  const call = { thread_id: "t1", turn_id: "u1", tool_call_id: "c1", tool_name: "read_file", tool_input: { path: "a" } };
  let verdict = await gate.toolCall(call);
  while (verdict.decided_by === "client") {
    assert.ok(isRunning, printed.err);
    verdict = await gate.toolCall(call);
  }
  assert.partialDeepStrictEqual(verdict, { action: "allow", event_id: "u1/c1/call", thread_id: "t1" });
  const repeated = await gate.toolCall(call);
  assert.deepEqual(repeated, verdict, "a repeat gets the same verdict");
  const both = await gate.toolCalls([{ ...call, tool_call_id: "c2", tool_input: { path: "b" } }, { ...call, tool_call_id: "c3", tool_name: "bash" }]);
  assert.deepEqual(both.map(({ tool_call_id, code }) => [tool_call_id, code]), [["c2", "allow"], ["c3", "oap.tool_not_allowed"]]);
  const shared = await gate.toolCalls(["b", "c", "b"].map((path) => ({ ...call, tool_input: { path } })));
  assert.deepEqual([shared.map(({ code }) => code), new Set(shared.map(({ verdict_id }) => verdict_id)).size], [["allow", "allow", "allow"], 3]);
  assert.equal((await gate.toolResult({ ...call, result: "done" })).action, "allow");
  const denied = "Guardrail denied: tool 'bash' was blocked (oap.tool_not_allowed). Reason: tool 'bash' is denied. Choose an alternative approach.";
  assert.deepEqual(await agents(gate), [denied, denied]);
  assert.equal(gate.counts.boundaries_lost, 0);
  await gate.close();
});

/** The cases that every client passes: `clients/conformance`. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Gate, type AskingType, type FailureMode, type ToolResult, type Verdict } from "@tollgate/client";

import { FakeGate, refusingTaken, type Fault, type Received } from "./support/fake_gate.js";
import { PACKAGE } from "./support/paths.js";

interface Answer {
  fault?: "refused" | "silent" | "cut";
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
  text?: string;
}
interface Case {
  name: string;
  call: { method: AskingType } & ToolResult;
  on_failure?: FailureMode;
  answer?: Answer;
  answers?: Answer[];
  sent?: Record<string, unknown> | null;
  expect: Record<string, unknown>;
}

interface IdCase {
  name: string;
  calls: Case["call"][];
  decided: string[];
}

const METHODS = { model_response: "modelResponse", tool_call: "toolCall", tool_result: "toolResult" } as const;
const read = (name: string): unknown => JSON.parse(readFileSync(`${PACKAGE}/../conformance/${name}.json`, "utf8"));
const CASES = ["verdicts", "faults"].flatMap((name) => read(name) as Case[]);
const IDS = read("ids") as IdCase[];

/** Returns a fault that gives the case's answers in turn, and the last one from then on. */
function answering(answers: readonly Answer[]): Fault {
  let given = 0;
  return (response, request) => {
    const { fault, status, headers, body, text } = answers[Math.min(given++, answers.length - 1)] ?? {};
    if (fault === "cut") response.destroy();
    if (fault !== undefined) return true;
    const { event_id } = request.body as Received;
    const content = text ?? JSON.stringify(body).replaceAll("{event_id}", event_id);
    response.writeHead(status ?? 200, { "content-type": "application/json", ...headers }).end(content);
    return true;
  };
}

test("there are cases", () => {
  assert.ok(CASES.length >= 30 && IDS.length >= 12);
});

for (const { name, calls, decided } of IDS) {
  test(`conformance: ${name}`, async () => {
    await using server = await FakeGate.start();
    server.fault = refusingTaken();
    const gate = new Gate({ url: server.url, deadlineMs: 30_000, log: () => undefined });
    for (const [at, { method, ...event }] of calls.entries()) {
      const { code, event_id } = await gate[METHODS[method]](event);
      assert.deepEqual([code, event_id], ["allow", decided[at]]);
    }
  });
}

for (const { name, call, on_failure, answer, answers, sent, expect } of CASES) {
  test(`conformance: ${name}`, async () => {
    await using server = await FakeGate.start();
    server.fault = answering(answers ?? [answer ?? {}]);
    const url = answer?.fault === "refused" ? "http://127.0.0.1:1" : server.url;
    // Only a gate that is silent is waited for.
    const deadlineMs = answer?.fault === "silent" ? 150 : 4000;
    const gate = new Gate({ url, deadlineMs, onFailure: on_failure ?? "closed", log: () => undefined });
    const { method, ...event } = call;
    const verdict = await gate[METHODS[method]](event);
    for (const [field, value] of Object.entries(expect)) assert.deepEqual(verdict[field as keyof Verdict] ?? null, value, `${field}: ${JSON.stringify(verdict)}`);
    if (sent === null) assert.equal(server.requests.length, 0);
    else if (sent !== undefined) assert.deepEqual(server.events[0], sent);
  });
}

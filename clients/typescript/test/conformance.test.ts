/** The cases that every client passes: `clients/conformance`. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Gate, type AskingType, type FailureMode, type ToolResult, type Verdict } from "@tollgate/client";

import { FakeGate, type Fault, type Received } from "./support/fake_gate.js";
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
  answer: Answer;
  sent?: Record<string, unknown> | null;
  expect: Record<string, unknown>;
}

const METHODS = { model_response: "modelResponse", tool_call: "toolCall", tool_result: "toolResult" } as const;
const CASES = ["verdicts", "faults"].flatMap((name) => JSON.parse(readFileSync(`${PACKAGE}/../conformance/${name}.json`, "utf8")) as Case[]);

/** Returns a fault that answers as the case says. */
function answering({ fault, status, headers, body, text }: Answer): Fault {
  return (response, request) => {
    if (fault === "cut") response.destroy();
    if (fault !== undefined) return true;
    const { event_id } = request.body as Received;
    const content = text ?? JSON.stringify(body).replaceAll("{event_id}", event_id);
    response.writeHead(status ?? 200, { "content-type": "application/json", ...headers }).end(content);
    return true;
  };
}

test("there are cases", () => {
  assert.ok(CASES.length >= 28);
});

for (const { name, call, on_failure, answer, sent, expect } of CASES) {
  test(`conformance: ${name}`, async () => {
    await using server = await FakeGate.start();
    server.fault = answering(answer);
    const url = answer.fault === "refused" ? "http://127.0.0.1:1" : server.url;
    // Only a gate that is silent is waited for.
    const deadlineMs = answer.fault === "silent" ? 150 : 4000;
    const gate = new Gate({ url, deadlineMs, onFailure: on_failure ?? "closed", log: () => undefined });
    const { method, ...event } = call;
    const verdict = await gate[METHODS[method]](event);
    for (const [field, value] of Object.entries(expect)) assert.deepEqual(verdict[field as keyof Verdict], value, `${field}: ${JSON.stringify(verdict)}`);
    if (sent === null) assert.equal(server.requests.length, 0);
    else if (sent !== undefined) assert.deepEqual(server.events[0], sent);
  });
}

/**
 * Cases beyond those of every client: `test/cases.json`. `ask` is the method, `event` its argument, `expect` what the verdict has, `sent` what
 * the first request's event has, `requests` how many requests come. `answers` are given to the requests in turn, and the last answer to every
 * later request: `verdict` is a plain allow that is changed by these members (null removes a member), `http` an answer as it stands, `hang` no
 * answer, `trickle` the beginning of a verdict, `reset` a connection that breaks; `absent` in place of a list: nobody listens.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Gate } from "@tollgate/client";
import type { AskingType, FailureMode, ToolResult, Verdict } from "@tollgate/client";

import { FakeGate, json, verdictOf, type Fault, type Received } from "./support/fake_gate.js";
import { PACKAGE } from "./support/paths.js";

interface Http {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
}
type Answer = { verdict: Record<string, unknown> } | { http: Http } | "hang" | "trickle" | "reset";
interface Case {
  name: string;
  ask: AskingType;
  event: ToolResult;
  on_failure?: FailureMode;
  deadline_ms?: number;
  answers: Answer[] | "absent";
  expect: Record<string, unknown>;
  sent?: Record<string, unknown>;
  requests?: number;
}

const { cases } = JSON.parse(readFileSync(`${PACKAGE}/test/cases.json`, "utf8")) as { cases: Case[] };

/** Returns a fault that gives the answers in turn, and the last answer to every later request. */
function inTurn(answers: Answer[]): Fault {
  const left = [...answers];
  return (response, { body }) => {
    const answer = left.length > 1 ? left.shift() : left[0];
    if (answer === undefined || answer === "hang") return true;
    if (answer === "reset") response.destroy();
    else if (answer === "trickle") response.writeHead(200, { "content-type": "application/json" }).write('{"event_id": ');
    else if ("verdict" in answer) {
      const verdict = verdictOf(body as Received, answer.verdict);
      json(response, 200, Object.fromEntries(Object.entries(verdict).filter(([, value]) => value !== null)));
    } else {
      const { status, headers, body: text } = answer.http;
      if (typeof text === "string") response.writeHead(status, headers).end(text);
      else json(response, status, text, headers);
    }
    return true;
  };
}

test("there are cases", () => {
  assert.ok(cases.length >= 40);
});

for (const { name, ask, event, on_failure, deadline_ms, answers, expect, sent, requests } of cases) {
  test(`case: ${name}`, async () => {
    await using server = await FakeGate.start();
    if (answers === "absent") await server.stop();
    else server.fault = inTurn(answers);
    const lines: string[] = [];
    const url = server.listening ? server.url : "http://127.0.0.1:1";
    const gate = new Gate({ url, deadlineMs: deadline_ms ?? 10_000, onFailure: on_failure ?? "closed", log: (line) => lines.push(line) });
    const method = { model_response: "modelResponse", tool_call: "toolCall", tool_result: "toolResult" } as const;
    const verdict = await gate[method[ask]](event);
    for (const [field, value] of Object.entries(expect)) assert.deepEqual(verdict[field as keyof Verdict], value, `${field}: ${JSON.stringify(verdict)}`);
    assert.equal(lines.length, verdict.decided_by === "client" ? 1 : 0, "a verdict that did not come is logged");
    if (requests !== undefined) assert.equal(server.requests.length, requests);
    if (sent !== undefined) {
      assert.partialDeepStrictEqual(server.requests[0], { method: "POST", path: "/v1/events" });
      assert.partialDeepStrictEqual(server.events[0], { type: ask, ...sent });
    }
    await gate.close();
  });
}

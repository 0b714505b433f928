/** The rewriting of responses: the cases that the Rust sanitiser has, and the same places as its readers. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { sanitiseMessage, sanitiseResponse } from "@tollgate/client";
import type { Safety } from "@tollgate/client";

import { MESSAGES, RESPONSES, steps } from "../src/readers.js";
import { REPOSITORY } from "./support/paths.js";

interface Case {
  name: string;
  as: "message" | "response";
  in: unknown;
  safety: Safety;
  out: unknown;
}

const CASES = readFileSync(`${REPOSITORY}/tests/sanitiser_cases.jsonl`, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Case);

test("there are cases", () => {
  assert.ok(CASES.length >= 20);
});

for (const { name, as, in: body, safety, out } of CASES) {
  test(`sanitiser: ${name}`, () => {
    const before = structuredClone(body);
    const got: unknown = as === "message" ? sanitiseMessage(body, safety) : sanitiseResponse(body, safety);
    assert.deepEqual(got, out);
    assert.deepEqual(body, before, "the body itself is not changed");
  });
}

test("a member named __proto__ is no way around it", () => {
  const body: unknown = JSON.parse('{"__proto__": {"a": 1}, "content": [{"type": "tool_use", "id": "c"}]}');
  const got = sanitiseResponse(body, {});
  assert.equal(JSON.stringify(got), '{"__proto__":{"a":1},"content":[]}');
});

test("every place of the Rust readers is known here, and no other", () => {
  const folder = `${REPOSITORY}/crates/core/src/decide/safety/reading`;
  const files = readdirSync(`${folder}/readers`).map((name) => readFileSync(`${folder}/readers/${name}`, "utf8"));
  const copies = /RAW_COPIES: &\[CallsAt\] = &\[([^;]*)\];/.exec(readFileSync(`${folder}/sanitise.rs`, "utf8"))?.[1] ?? "";
  const list = /^ {4}(calls|wrappers): &\[([\s\S]*?)\],\n(?= {4}[a-z.]|\};)/gm;
  const ofCalls = /(?:path: |\b[a-z_:]+\()"((?:[^"\\]|\\.)*)"/g;
  const literals = (text: string, pattern: RegExp): string[] => Array.from(text.matchAll(pattern), ([, path]) => (path ?? "").replaceAll('\\"', '"'));
  const rust = new Set(literals(copies, ofCalls));
  for (const [, kind, text] of files.flatMap((file) => [...file.matchAll(list)])) {
    for (const path of literals(text ?? "", kind === "calls" ? ofCalls : /"([^"]*)"/g)) rust.add(path);
  }
  const here = new Set([RESPONSES, MESSAGES].flatMap((shape) => [...shape.wrappers, ...shape.calls.map(({ path }) => path)]));
  assert.ok(rust.size > 30);
  assert.deepEqual([...here].sort(), [...rust].sort());
});

test("paths have members, items and the last item", () => {
  assert.deepEqual(steps('"x.y-z"[].w[-1]'), [{ member: "x.y-z" }, "items", { member: "w" }, "last"]);
  assert.deepEqual(steps(""), []);
});

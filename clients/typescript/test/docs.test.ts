/** `docs/typescript.md`: its snippets compile, run, and show what the page says. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { FakeGate } from "./support/fake_gate.js";
import { PACKAGE, REPOSITORY } from "./support/paths.js";

const PAGE = readFileSync(`${REPOSITORY}/docs/typescript.md`, "utf8");
const LINES_MAX = 80;
const FOLDER = `${PACKAGE}/build/docs`;

/** Returns the code of the page's blocks in a language. */
function blocks(language: string): string[] {
  return Array.from(PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms")), ([, code]) => code ?? "");
}

/** Runs a program and returns what it prints. */
async function output(words: string[]): Promise<string> {
  const child = spawn(process.execPath, words, { cwd: PACKAGE, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise((resolve) => child.on("close", resolve));
  assert.equal(code, 0, text);
  return text.trim();
}

test("the page is a screen long and leads to the contract", () => {
  assert.ok(PAGE.split("\n").length <= LINES_MAX);
  assert.match(PAGE, /\(contract\.md\)/);
});

test("the snippets compile, run, and print the text of a blocked call", async () => {
  await using server = await FakeGate.start();
  const [denied] = blocks("text").map((text) => text.trim());
  server.rule = ({ type }) => (type === "tool_call" ? { action: "block", code: "oap.tool_not_allowed", decided_by: "guardrail", synthetic_result: denied! } : undefined);
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const snippets = blocks("ts");
  assert.equal(snippets.length, 3);
  for (const [at, kind] of ["plain", "ai-sdk", "langchain"].entries()) {
    mkdirSync(`${FOLDER}/${kind}`);
    if (kind !== "plain") cpSync(`${PACKAGE}/test/support/yours.${kind}.ts`, `${FOLDER}/${kind}/yours.ts`);
    writeFileSync(`${FOLDER}/${kind}/snippet.ts`, snippets[at] ?? "");
  }
  const compilerOptions = { rootDir: ".", outDir: ".", types: ["node"], exactOptionalPropertyTypes: false, declaration: false };
  writeFileSync(`${FOLDER}/tsconfig.json`, JSON.stringify({ extends: "../../tsconfig.json", compilerOptions, include: ["*/*.ts"], exclude: [] }));
  await output(["node_modules/typescript/bin/tsc", "-p", FOLDER]);
  // The snippets speak to the port of `tollgate dev`, which may be another program's here.
  const redirect = `const own = fetch; globalThis.fetch = (url, init) => own(String(url).replace("http://127.0.0.1:7878", "${server.url}"), init);`;
  writeFileSync(`${FOLDER}/redirect.js`, redirect);
  for (const kind of ["plain", "ai-sdk", "langchain"]) {
    assert.equal(await output(["--import", `${FOLDER}/redirect.js`, `${FOLDER}/${kind}/snippet.js`]), denied, kind);
  }
  assert.equal(server.of("tool_call").length, 3);
});

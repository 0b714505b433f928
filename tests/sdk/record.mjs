// Writes what the current SDKs for JavaScript serialise, as record.py does for Python:
//
//     npm install --no-save --prefix target/sdk-node ai@6 cloudevents@10 && cp tests/sdk/record.mjs target/sdk-node
//     node target/sdk-node/record.mjs >> crates/core/tests/fixtures/sdk_objects.jsonl
//
// The model is the SDK's own mock of a provider: all that is written is made by the SDK.

import { readFileSync } from "node:fs";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { CloudEvent, Kafka } from "cloudevents";

const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

function line(name, id, field, body, expect, tools = []) {
  const fields = ["category", "detector", "stage", "reason_field", "reason_value"];
  const expected = expect && { expect: Object.fromEntries(fields.map((field, at) => [field, expect[at]])) };
  console.log(JSON.stringify({ sdk: `${name} ${version(name)}`, id: `${name}: ${id}`, as: field, body, tools, ...expected }));
}

const usage = {
  inputTokens: { total: 5, noCache: 1, cacheRead: 4, cacheWrite: 0 },
  outputTokens: { total: 7, text: 4, reasoning: 3 },
};
const call = { type: "tool-call", toolCallId: "call_1", toolName: "shell", input: '{"finishReason":"content-filter"}' };
const tools = { shell: tool({ inputSchema: jsonSchema({ type: "object" }) }) };
const stop = ["safety", "vercel_ai_sdk", "output", "finishReason", "content-filter"];

for (const [unified, raw, expect] of [["content-filter", "content_filter", stop], ["tool-calls", "tool_calls", undefined]]) {
  const finishReason = { unified, raw };
  const generated = { content: [{ type: "text", text: "I" }, call], finishReason, usage, warnings: [] };
  const parts = [
    { type: "stream-start", warnings: [] },
    { type: "tool-input-start", id: "call_1", toolName: "shell" },
    { type: "tool-input-delta", id: "call_1", delta: call.input },
    { type: "tool-input-end", id: "call_1" },
    call,
    { type: "finish", finishReason, usage },
  ];
  const model = new MockLanguageModelV3({
    doGenerate: generated,
    doStream: async () => ({ stream: simulateReadableStream({ chunks: parts }) }),
  });
  const result = await generateText({ model, tools, prompt: "x" });
  line("ai", `generateText, a step, ${unified}`, "response", result.steps[0], expect, ["shell"]);
  const picked = { text: result.text, toolCalls: result.toolCalls, finishReason: result.finishReason, usage: result.usage };
  line("ai", `generateText, its members, ${unified}`, "response", picked, expect, ["shell"]);
  line("ai", `doGenerate, ${unified}`, "response", generated, expect && [...stop.slice(0, 3), "finishReason.unified", stop[4]], ["shell"]);
  const streamed = [];
  for await (const part of streamText({ model, tools, prompt: "x" }).fullStream) streamed.push(part);
  line("ai", `streamText, its parts, ${unified}`, "response", streamed, expect, ["shell"]);
}

const event = new CloudEvent({
  id: "e1",
  source: "/agents",
  type: "com.acme.agent.tool_call",
  subject: "t1",
  time: "2026-01-02T03:04:05Z",
  datacontenttype: "application/json",
  data: { tool_call_id: "call_1", tool_name: "shell", tool_input: { cmd: "ls" } },
});
for (const form of ["structured", "binary"]) {
  const { headers, value } = Kafka[form](event);
  // A client of Kafka gets a value that is no text as JSON.
  line("cloudevents", `JavaScript, ${form}`, "record", { headers, value: typeof value === "string" ? value : JSON.stringify(value) });
}

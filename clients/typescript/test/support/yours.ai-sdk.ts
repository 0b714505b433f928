/** A model and tools for the page's example of the Vercel AI SDK: the model calls `bash`, and then repeats what it read. */

import { tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };

export const model = new MockLanguageModelV4({
  doGenerate: ({ prompt }) => {
    const last = prompt.at(-1);
    const read = last?.role === "tool" ? last.content.map((part) => (part.type === "tool-result" && part.output.type === "error-text" ? part.output.value : "")) : [];
    const called = { type: "tool-call" as const, toolCallId: "call-1", toolName: "bash", input: '{"command":"ls"}' };
    const content = read.length === 0 ? called : { type: "text" as const, text: read.join("") };
    const unified = read.length === 0 ? ("tool-calls" as const) : ("stop" as const);
    return Promise.resolve({ content: [content], finishReason: { unified, raw: unified }, usage, warnings: [] });
  },
});

export const tools = {
  bash: tool({
    inputSchema: z.object({ command: z.string() }),
    execute: (): string => {
      throw new Error("the tool ran");
    },
  }),
};

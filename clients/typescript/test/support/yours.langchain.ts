/** A model and tools for the page's example of LangChain: the model calls `bash`, and then repeats what it read; in two runs. */

import { AIMessage, fakeModel, tool } from "langchain";
import { z } from "zod";

const calls = [{ name: "bash", args: { command: "ls" }, id: "call-1" }];
const repeats = (messages: readonly { text: string }[]): AIMessage => new AIMessage(messages.at(-1)?.text ?? "");

export const model = fakeModel().respondWithTools(calls).respond(repeats).respondWithTools(calls).respond(repeats);

export const tools = [
  tool(
    () => {
      throw new Error("the tool ran");
    },
    { name: "bash", description: "runs a command", schema: z.object({ command: z.string() }) },
  ),
];

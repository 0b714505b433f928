/** A model and tools for the page's example of LangChain: the model calls `bash`, and then repeats what it read. */

import { AIMessage, fakeModel, tool } from "langchain";
import { z } from "zod";

export const model = fakeModel()
  .respondWithTools([{ name: "bash", args: { command: "ls" }, id: "call-1" }])
  .respond((messages) => new AIMessage(messages.at(-1)?.text ?? ""));

export const tools = [
  tool(
    () => {
      throw new Error("the tool ran");
    },
    { name: "bash", description: "runs a command", schema: z.object({ command: z.string() }) },
  ),
];

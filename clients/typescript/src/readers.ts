/**
 * Where the calls of a response are, in the shape of each provider: a copy of the tables in `crates/core/src/decide/safety/reading/readers`,
 * which a test compares.
 *
 * Paths are members joined by dots; `[]` stands for every item of an array and `[-1]` for the last. Members with dots of their own are in
 * quotes.
 */

/** A place where tool calls are. */
export interface CallsAt {
  /** The path of one call. */
  path: string;
  /** The types of a call that count, in `typeMember`; absent if every object counts. */
  types?: readonly string[];
  /** The member that holds the type. Default: `type`. */
  typeMember?: string;
  /** The paths of the id within a call; the first that is there counts. */
  id: readonly string[];
}

/** One kind of bodies. */
export interface Shape {
  /** The paths behind which the same kind of body stands again. */
  wrappers: readonly string[];
  calls: readonly CallsAt[];
}

/** Blocks of content that the host runs. The provider itself runs `server_tool_use` and `mcp_tool_use`. */
const BLOCKS = ["tool_use", "tool_call", "invalid_tool_call", "function_call", "custom_tool_call", "tool-call"];
/** Items of the Responses API that the host runs. */
const ITEMS = ["function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "computer_call"];

const plain = (path: string): CallsAt => ({ path, id: ["id"] });
const withoutId = (path: string): CallsAt => ({ path, id: [] });
const blocks = (path: string): CallsAt => ({ path, types: BLOCKS, id: ["call_id", "toolCallId", "id"] });
const items = (path: string): CallsAt => ({ path, types: ITEMS, id: ["call_id", "id"] });
const vercel = (path: string, types?: string[]): CallsAt => ({ path, id: ["toolCallId", "id"], ...(types === undefined ? {} : { types }) });
const otel = (path: string): CallsAt => ({ path, types: ["tool_call"], id: ["id"] });

/** Native bodies of providers, and the events of their streams. */
export const RESPONSES: Shape = {
  wrappers: ["response.body", "response", "result.message", "message", "interaction", "Response"],
  calls: [
    // OpenAI Chat and those who speak it.
    plain("choices[].message.tool_calls[]"),
    plain("choices[].delta.tool_calls[]"),
    withoutId("choices[].message.function_call"),
    withoutId("choices[].delta.function_call"),
    blocks("choices[].message.content[]"),
    // OpenAI Responses.
    items("output[]"),
    items("item"),
    // Anthropic.
    blocks("content[]"),
    blocks("content_block"),
    // Gemini.
    plain("candidates[].content.parts[].functionCall"),
    plain("candidates[].content.parts[].function_call"),
    plain("toolCall.functionCalls[]"),
    plain("tool_call.function_calls[]"),
    blocks("steps[]"),
    blocks("outputs[]"),
    blocks("delta"),
    // Bedrock Converse.
    { path: "output.message.content[].toolUse", id: ["toolUseId"] },
    { path: "contentBlockStart.start.toolUse", id: ["toolUseId"] },
    // Cohere's stream.
    plain("delta.message.tool_calls"),
    // Cohere, Baidu, and hosts that publish one choice alone.
    plain("tool_calls[]"),
    withoutId("function_call"),
    // DashScope.
    plain("output.choices[].message.tool_calls[]"),
    // Hunyuan.
    { path: "Choices[].Message.ToolCalls[]", id: ["Id"] },
    { path: "Choices[].Delta.ToolCalls[]", id: ["Id"] },
    // Spark.
    withoutId("payload.choices.text[].function_call"),
    // xAI's own SDK.
    plain("outputs[].message.tool_calls[]"),
    plain("outputs[].delta.tool_calls[]"),
    // Vercel AI SDK.
    vercel("toolCalls[]"),
    blocks("steps[].content[]"),
    vercel("", ["tool-input-start", "tool-input-available", "tool-call"]),
    // Pydantic AI.
    { path: "parts[]", typeMember: "part_kind", types: ["tool-call"], id: ["tool_call_id"] },
    // OpenTelemetry GenAI.
    otel('attributes."gen_ai.output.messages"[].parts[]'),
    otel('"gen_ai.output.messages"[].parts[]'),
  ],
};

/** LangChain messages, and the copies of calls that LangChain's integrations leave in metadata. */
export const MESSAGES: Shape = {
  wrappers: ["kwargs", "data", "messages[-1]", "generations[][].message"],
  calls: [
    plain("tool_calls[]"),
    plain("invalid_tool_calls[]"),
    plain("tool_call_chunks[]"),
    plain("additional_kwargs.tool_calls[]"),
    withoutId("additional_kwargs.function_call"),
    blocks("content[]"),
    plain("response_metadata.tool_calls[]"),
    withoutId("response_metadata.function_call"),
    plain("response_metadata.message.tool_calls[]"),
  ],
};

/** One step of a path: a member's name, every item, or the last item. */
export type Step = { member: string } | "items" | "last";

/** Returns the steps of a path. */
export function steps(path: string): Step[] {
  const parts = path.matchAll(/\[\]|\[-1\]|"([^"]*)"|[^.[\]"]+/g);
  return Array.from(parts, ([part, quoted]) => (part === "[]" ? "items" : part === "[-1]" ? "last" : { member: quoted ?? part }));
}

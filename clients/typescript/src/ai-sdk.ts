/**
 * Vercel AI SDK: a model and tools behind the gate.
 *
 * The model's answers are reported before their calls run, and lose the calls that must not run. A tool that may not run throws, so that the
 * model reads the verdict's text as the tool's error. After a halt the model is not called again, and the run ends with the verdict's message.
 *
 * Tools that the provider runs itself, and tools without `execute`, run outside this process: the gate cannot stop them.
 */

import { wrapLanguageModel, type LanguageModelMiddleware, type Tool, type ToolSet } from "ai";

import { losesCalls } from "./sanitise.js";
import type { Turn } from "./turn.js";
import { isObject, type Verdict } from "./wire.js";

type Model = Parameters<typeof wrapLanguageModel>[0]["model"];
type GenerateResult = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;
type StreamResult = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type StreamPart = StreamResult["stream"] extends ReadableStream<infer P> ? P : never;
type FinishReason = GenerateResult["finishReason"];
type ModelOutput = Awaited<ReturnType<NonNullable<Tool["toModelOutput"]>>>;

/** What a response says of a call; its arguments come with the call itself. */
interface Called {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
}

/** Says that a tool may not run. Its message is the text for the agent. */
export class Blocked extends Error {
  override name = "Blocked";

  constructor(readonly verdict: Verdict) {
    super(verdict.synthetic_result ?? verdict.message);
  }

  /** The SDK shows the model an error's text with its name before it: the text may be JSON, and stays as it is. */
  override toString(): string {
    return this.message;
  }
}

/**
 * Returns a model and tools behind the gate, for one turn: `generateText({ ...gated(turn, { model, tools }), prompt })`.
 *
 * @param turn The turn that the run belongs to. The SDK hands no thread to tools, so wrap anew for each turn.
 */
export function gated<T extends ToolSet>(turn: Turn, { model, tools }: { model: Model; tools: T }): { model: Model; tools: T } {
  const wrapped = Object.entries(tools).map(([name, tool]) => [name, gatedTool(turn, name, tool as Tool)]);
  return { model: wrapLanguageModel({ model, middleware: gateMiddleware(turn) }), tools: Object.fromEntries(wrapped) as T };
}

/** Returns the middleware that reports a model's answers, for a model whose tools are gated by `gatedTool`. */
export function gateMiddleware(turn: Turn): LanguageModelMiddleware {
  return {
    specificationVersion: "v4",
    async wrapGenerate({ doGenerate, params }) {
      if (turn.halted !== undefined) return haltedResult(turn.halted);
      const result = await reportingErrors(turn, doGenerate);
      const text = result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
      const calls = result.content.filter((part) => part.type === "tool-call").filter((part) => part.providerExecuted !== true);
      note(turn, result.response?.id, calls);
      const verdict = await report(turn, text, calls, result.finishReason, params.abortSignal);
      if (!losesCalls(verdict, calls.length > 0)) return result;
      const content = result.content.filter((part) => part.type !== "tool-call" || part.providerExecuted === true || isKept(part.toolCallId, verdict));
      const finishReason = finishOf(verdict, result.finishReason);
      return { ...result, content: [...content, { type: "text", text: textOf(verdict, text) }], finishReason };
    },
    async wrapStream({ doStream, params }) {
      if (turn.halted !== undefined) return haltedStream(turn.halted);
      const { stream, ...rest } = await reportingErrors(turn, doStream);
      return { ...rest, stream: stream.pipeThrough(holdingCalls(turn, params.abortSignal)) };
    },
  };
}

/** Returns a tool whose `execute` asks the gate first and reports the result. A tool without `execute` stays as it is. */
export function gatedTool(turn: Turn, name: string, tool: Tool): Tool {
  const { execute, toModelOutput } = tool;
  if (execute === undefined) return tool;
  type Options = Parameters<typeof execute>[1];
  const guidance = new Map<string, string>();

  async function* outputs(input: unknown, options: Options): AsyncGenerator {
    const response_id = turn.responses.get(options.toolCallId);
    const call = { tool_call_id: options.toolCallId, tool_name: name, tool_input: input, ...(response_id === undefined ? {} : { response_id }) };
    const verdict = await turn.toolCall(call, signalOf(options.abortSignal));
    if (!verdict.allows_execution) throw new Blocked(verdict);
    let result: unknown;
    try {
      const made: unknown = execute?.(input, options);
      if (isAsyncIterable(made)) for await (result of made) yield result;
      else yield (result = await made);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const { guidance: text } = await turn.toolResult({ ...call, result: message, failed: true });
      throw text === undefined ? error : withGuidance(error, message + text);
    }
    const { guidance: text } = await turn.toolResult({ ...call, result });
    if (text !== undefined) guidance.set(options.toolCallId, text);
  }
  async function lastOutput(input: unknown, options: Options): Promise<unknown> {
    let last: unknown;
    for await (last of outputs(input, options));
    return last;
  }
  // The SDK tells a stream of outputs by what `execute` returns at once, before the gate has answered. Of a stream that a plain function
  // returns, the last output counts.
  const isStream = execute.constructor.name === "AsyncGeneratorFunction";
  return {
    ...tool,
    execute: isStream ? outputs : lastOutput,
    async toModelOutput(made) {
      const shown = await (toModelOutput?.(made) ?? plainOutput(made.output));
      const text = guidance.get(made.toolCallId);
      return text === undefined ? shown : withText(shown, text);
    },
  };
}

/** Returns an error under the name of the tool's own, with guidance for the model. */
function withGuidance(cause: unknown, message: string): Error {
  const error = new Error(message, { cause });
  if (cause instanceof Error) error.name = cause.name;
  return error;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function signalOf(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Returns what the SDK itself makes of a tool's output. */
function plainOutput(output: unknown): ModelOutput {
  if (typeof output === "string") return { type: "text", value: output };
  const json: unknown = JSON.stringify(output);
  return { type: "json", value: typeof json === "string" ? (JSON.parse(json) as never) : null };
}

/** Returns a tool's output with a text behind it. */
function withText(output: ModelOutput, text: string): ModelOutput {
  switch (output.type) {
    case "text":
    case "error-text":
      return { ...output, value: output.value + text };
    case "json":
      return { type: "text", value: JSON.stringify(output.value) + text };
    case "error-json":
      return { type: "error-text", value: JSON.stringify(output.value) + text };
    case "content":
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- the SDK deprecates another member of this union
      return { ...output, value: [...output.value, { type: "text", text }] };
    default:
      return output;
  }
}

/** Remembers the response that asks for calls, if the provider names it. */
function note({ responses }: Turn, id: string | undefined, calls: readonly Called[]): void {
  if (id !== undefined) for (const { toolCallId } of calls) responses.set(toolCallId, id);
}

async function report(turn: Turn, text: string, calls: readonly Called[], finishReason: FinishReason, signal: AbortSignal | undefined): Promise<Verdict> {
  const named = calls.map(({ toolCallId, toolName }) => ({ type: "tool-call", toolCallId, toolName }));
  return await turn.modelResponse({ response: { text, toolCalls: named, finishReason } }, signalOf(signal));
}

/** Calls the model, and reports the body of the provider's error, which may be a stop by a safety system. The error itself goes on. */
async function reportingErrors<R>(turn: Turn, call: () => PromiseLike<R>): Promise<R> {
  try {
    return await call();
  } catch (error) {
    const body = isObject(error) && typeof error["responseBody"] === "string" ? parsed(error["responseBody"]) : undefined;
    if (isObject(body)) await turn.modelResponse({ error: body });
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Returns whether a call stays in a response that was suppressed: the provider may have flagged others alone. */
function isKept(id: string, { safety }: Verdict): boolean {
  return safety?.category === "tool_flagged" && safety.suppressed_tool_call_ids?.includes(id) === false;
}

function finishOf({ safety }: Verdict, finishReason: FinishReason): FinishReason {
  return safety?.category === "tool_flagged" ? finishReason : { unified: "content-filter", raw: finishReason.raw };
}

/** Returns the text for the user that is appended to a suppressed response. */
function textOf(verdict: Verdict, before: string): string {
  const text = verdict.safety?.user_message ?? verdict.message;
  return before === "" ? text : `\n\n${text}`;
}

function haltedResult(verdict: Verdict): GenerateResult {
  return { content: [{ type: "text", text: verdict.message }], finishReason: HALTED, usage: NO_USAGE, warnings: [] };
}

function haltedStream(verdict: Verdict): StreamResult {
  const parts: StreamPart[] = [
    { type: "stream-start", warnings: [] },
    ...textParts(verdict.message),
    { type: "finish", finishReason: HALTED, usage: NO_USAGE },
  ];
  const stream = new ReadableStream<StreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  return { stream };
}

function textParts(delta: string): StreamPart[] {
  const id = `tollgate-${crypto.randomUUID()}`;
  return [{ type: "text-start", id }, { type: "text-delta", id, delta }, { type: "text-end", id }];
}

const HALTED: FinishReason = { unified: "other", raw: "tollgate_halt" };
const NO_TOKENS = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
const NO_USAGE: GenerateResult["usage"] = { inputTokens: NO_TOKENS, outputTokens: { total: 0, text: 0, reasoning: 0 } };

/** Returns a transformer that holds the parts of calls back until the response is complete and reported. What never completes is dropped. */
function holdingCalls(turn: Turn, signal: AbortSignal | undefined): TransformStream<StreamPart, StreamPart> {
  const held: StreamPart[] = [];
  const ofProvider = new Set<string>();
  let text = "";
  let responseId: string | undefined;
  return new TransformStream({
    async transform(part, controller) {
      if (part.type === "text-delta") text += part.delta;
      if (part.type === "response-metadata") responseId = part.id;
      const id = callOf(part);
      if (id !== undefined && "providerExecuted" in part && part.providerExecuted) ofProvider.add(id);
      if (id !== undefined && !ofProvider.has(id)) {
        held.push(part);
        return;
      }
      if (part.type !== "finish") {
        controller.enqueue(part);
        return;
      }
      const calls = held.filter((each) => each.type === "tool-call");
      note(turn, responseId, calls);
      const verdict = await report(turn, text, calls, part.finishReason, signal);
      const isAllowed = !losesCalls(verdict, held.length > 0);
      for (const each of held) if (isAllowed || isKept(callOf(each) ?? "", verdict)) controller.enqueue(each);
      if (!isAllowed) for (const each of textParts(textOf(verdict, text))) controller.enqueue(each);
      controller.enqueue(isAllowed ? part : { ...part, finishReason: finishOf(verdict, part.finishReason) });
    },
  });
}

/** Returns the id of the call that a part of a stream belongs to. */
function callOf(part: StreamPart): string | undefined {
  switch (part.type) {
    case "tool-input-start":
    case "tool-input-delta":
    case "tool-input-end":
      return part.id;
    case "tool-call":
      return part.toolCallId;
    default:
      return undefined;
  }
}

/**
 * LangChain and LangGraph: a middleware that puts an agent's tools behind the gate.
 *
 * Put it last in the list of middleware: then it sees the model's own answer and the arguments that the tool really gets. Streams of the mode
 * `messages` show an answer's pieces before the gate has seen the answer.
 */

import { AIMessage, BaseMessage, ToolMessage, mapStoredMessageToChatMessage, type StoredMessage } from "@langchain/core/messages";
import { ToolInvocationError, createMiddleware } from "langchain";
import { z } from "zod";

import type { Gate } from "./gate.js";
import { losesCalls, sanitiseMessage } from "./sanitise.js";
import { childThread } from "./turn.js";
import { isObject, type Attribution, type EventBase, type Safety, type Verdict } from "./wire.js";

/** What the middleware reads of LangChain's runtime. */
interface Runtime {
  configurable?: { thread_id?: string; checkpoint_ns?: unknown; [key: string]: unknown };
  signal?: AbortSignal;
}

/** How the middleware behaves. */
export interface TollgateOptions {
  /** The subagent's name, for the agent of a subagent: its thread is `<thread>/<name>`. Left out: told from the checkpoint's namespace. */
  subagent?: string;
  /** Returns who acts, from what the caller put into `configurable`. */
  attribution?: (configurable: Record<string, unknown>) => Attribution;
  /**
   * What follows when a tool throws: `message` (the default) hands the error to the model, as an agent without middleware does; `throw` throws it
   * on to a middleware outside, such as `toolRetryMiddleware`.
   */
  toolErrors?: "message" | "throw";
}

/** Halted turns that are remembered at once; the oldest is forgotten first. A turn that ends is forgotten at its end. */
const HALTED_MAX = 10_000;

const stateSchema = z.object({ _tollgate_turn: z.string().optional() });
type State = z.infer<typeof stateSchema>;

/** Returns the middleware: `createAgent({ model, tools, middleware: [tollgateMiddleware(gate)] })`. */
export function tollgateMiddleware(gate: Gate, options: TollgateOptions = {}) {
  const halted = new Map<string, Verdict>();

  function about(state: State, { configurable = {} }: Runtime): EventBase & { turn_id: string } {
    // An agent that is called without `beforeAgent` has a turn of its own for each event: nothing is counted together that is not.
    const turn_id = state._tollgate_turn ?? crypto.randomUUID();
    return { ...options.attribution?.(configurable), ...threadOf(configurable, turn_id, options.subagent), turn_id };
  }
  function note(turn: string, verdict: Verdict): Verdict {
    if (!verdict.should_halt) return verdict;
    const [oldest] = halted.keys();
    if (halted.size >= HALTED_MAX && oldest !== undefined) halted.delete(oldest);
    halted.set(turn, halted.get(turn) ?? verdict);
    return verdict;
  }

  async function end(state: State, runtime: Runtime): Promise<void> {
    halted.delete(state._tollgate_turn ?? "");
    await gate.boundary("turn_end", about(state, runtime));
  }

  return createMiddleware({
    name: "Tollgate",
    stateSchema,
    beforeAgent: async (_, runtime) => {
      const event = about({ _tollgate_turn: crypto.randomUUID() }, runtime);
      await gate.boundary("turn_start", event);
      return { _tollgate_turn: event.turn_id };
    },
    beforeModel: {
      canJumpTo: ["end"],
      hook: async (state, runtime) => {
        const verdict = halted.get(state._tollgate_turn ?? "");
        if (verdict === undefined) return undefined;
        // A jump passes `afterAgent` by.
        await end(state, runtime);
        return { messages: [new AIMessage(verdict.message)], jumpTo: "end" as const };
      },
    },
    afterModel: async (state, runtime) => {
      const last = state.messages.at(-1);
      if (!AIMessage.isInstance(last)) return undefined;
      const event = about(state, runtime);
      const stored = last.toDict();
      const verdict = note(event.turn_id, await gate.modelResponse({ ...event, message: stored }, signalOf(runtime)));
      const { tool_calls = [], invalid_tool_calls = [] } = last;
      if (!losesCalls(verdict, tool_calls.length + invalid_tool_calls.length > 0)) return undefined;
      return { messages: [withoutCalls(stored, verdict)] };
    },
    wrapToolCall: async (request, handler) => {
      const { signal } = request.runtime as Runtime;
      const event = about(request.state, request.runtime);
      return await gatedCall(gate, event, request, handler, { signal, rethrows: options.toolErrors === "throw", note });
    },
    afterAgent: end,
  });
}

/** A call as LangChain hands it to a middleware. */
interface Called {
  id?: string;
  name: string;
  args: unknown;
}

interface CallOptions {
  signal: AbortSignal | undefined;
  /** Whether a tool's own error is thrown on. */
  rethrows: boolean;
  /** Remembers a verdict that ends the turn. */
  note: (turn: string, verdict: Verdict) => Verdict;
}

/** Asks about a call, runs it if it may run, and reports its result. */
async function gatedCall<R extends { toolCall: Called; state: { messages?: readonly unknown[] } }, O>(
  gate: Gate,
  event: EventBase & { turn_id: string },
  request: R,
  handler: (request: R) => O | Promise<O>,
  { signal, rethrows, note }: CallOptions,
): Promise<O | ToolMessage> {
  const { id, name, args } = request.toolCall;
  const call = { ...event, ...responseOf(request.state.messages, id), tool_call_id: id ?? crypto.randomUUID(), tool_name: name, tool_input: args };
  const message = (content: string): ToolMessage => new ToolMessage({ content, tool_call_id: id ?? "", name, status: "error" });
  const verdict = note(event.turn_id, await gate.toolCall(call, signalOf({ signal })));
  if (!verdict.allows_execution) return message(verdict.synthetic_result ?? verdict.message);
  let output: O;
  try {
    output = await handler(request);
  } catch (error) {
    // An interrupt is no failure: the call comes again when the run is resumed.
    if (isObject(error) && error["is_bubble_up"] === true) throw error;
    const { guidance = "" } = note(event.turn_id, await gate.toolResult({ ...call, result: error, failed: true }));
    if (rethrows || signal?.aborted === true) throw error;
    return message(textOf(error) + guidance);
  }
  const shown = messageOf(output, id);
  const failed = shown?.status === "error" ? { failed: true } : {};
  const { guidance } = note(event.turn_id, await gate.toolResult({ ...call, result: shown?.content ?? null, ...failed }));
  if (guidance !== undefined && shown !== undefined) append(shown, guidance);
  return output;
}

/** Returns the id of the message that asks for a call, where it has one. */
function responseOf(messages: readonly unknown[] = [], id: string | undefined): { response_id?: string } {
  const asking = messages.findLast((message) => AIMessage.isInstance(message) && message.tool_calls?.some((call) => call.id === id) === true);
  return AIMessage.isInstance(asking) && asking.id !== undefined ? { response_id: asking.id } : {};
}

function signalOf({ signal }: { signal?: AbortSignal | undefined }): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/**
 * Returns an agent's thread. A subagent has its parent's thread id, and a checkpoint namespace with a part for each graph around its own:
 * without a thread of its own its calls would be counted with those of its parent.
 */
function threadOf(configurable: Record<string, unknown>, turn: string, subagent: string | undefined): { thread_id: string; is_subagent?: true } {
  const { thread_id, checkpoint_ns } = configurable;
  const thread = typeof thread_id === "string" && thread_id !== "" ? thread_id : `run-${turn}`;
  const around = typeof checkpoint_ns === "string" ? checkpoint_ns.split("|").slice(0, -1) : [];
  const names = subagent === undefined ? around.map((part) => part.replaceAll("/", "_")) : [subagent];
  return names.length === 0 ? { thread_id: thread } : { thread_id: names.reduce(childThread, thread), is_subagent: true };
}

/** Returns a message that has its own id still, so that it takes the place of the message it was made of, without calls. */
function withoutCalls(stored: StoredMessage, verdict: Verdict): BaseMessage {
  const own: Safety = { detector: "tollgate", reason_field: "code", reason_value: verdict.code, user_message: verdict.message };
  return mapStoredMessageToChatMessage(sanitiseMessage(stored, verdict.safety ?? own));
}

/** Returns the message of a call in what its handler returned: the message itself, or one in the update of a Command. */
function messageOf(output: unknown, id: string | undefined): ToolMessage | undefined {
  if (ToolMessage.isInstance(output)) return output;
  const update = isObject(output) && isObject(output["update"]) ? output["update"]["messages"] : undefined;
  const messages: unknown[] = Array.isArray(update) ? update : [update];
  return messages.filter((message) => ToolMessage.isInstance(message)).find(({ tool_call_id }) => tool_call_id === id);
}

function append(message: ToolMessage, text: string): void {
  message.content = typeof message.content === "string" ? message.content + text : [...message.content, { type: "text", text }];
}

/** Returns what LangChain's own handler of errors shows the model. */
function textOf(error: unknown): string {
  return ToolInvocationError.isInstance(error) ? error.message : `${String(error)}\n Please fix your mistakes.`;
}

/** The wire: events as they are published and verdicts as they come back. Fields have the names of `docs/contract.md`. */

/** What an event may say of who acts. Every field is optional. */
export interface Attribution {
  agent_id?: string;
  user_id?: string;
  user_role?: string;
  tenant_id?: string;
  run_id?: string;
  /** Whether a person watches this run. */
  attended?: boolean;
}

/** What every event has. */
export interface EventBase extends Attribution {
  /** The conversation: 1 to 256 bytes. A subagent's is `<parent thread>/<child>`. */
  thread_id: string;
  /** Names the verdict, up to 128 bytes. Left out: derived from the turn and the call, or random for a model's answer without an id. */
  event_id?: string;
  /** The turn, up to 256 bytes. A new value starts a new turn. */
  turn_id?: string;
  is_subagent?: boolean;
  /** When it happened, as RFC 3339. Left out: when the gate published it. */
  timestamp?: string;
}

/** A model's answer, in exactly one of three forms. */
export interface ModelResponse extends EventBase {
  /** A hint: `openai`, `anthropic`, `gemini`, … */
  provider?: string;
  /** The provider's native response body. */
  response?: unknown;
  /** A LangChain AIMessage as an object. */
  message?: unknown;
  /** The body of the provider's API error. */
  error?: unknown;
  /** The provider's id of the response, so that a repeat counts once. It is part of the event's id, and not sent by itself. */
  response_id?: string;
}

/** A call that the agent wants to make. */
export interface ToolCall extends EventBase {
  /** Ties the result to its call. */
  tool_call_id: string;
  tool_name: string;
  /** The arguments as an object. */
  tool_input?: unknown;
  /** The arguments as a JSON text, as OpenAI sends them; in place of `tool_input`. */
  arguments?: string;
  /** The id of the response that asks for the call. It is part of the event's id: equal calls of two responses count twice, though both have one id. */
  response_id?: string;
}

/** What a call gave. */
export interface ToolResult extends ToolCall {
  /** A text or null. Any other value stands for its JSON text. */
  result: unknown;
  /** Whether the tool failed. Left out: told from the result. */
  failed?: boolean;
}

/** The event types that get a verdict. */
export type AskingType = "model_response" | "tool_call" | "tool_result";

/** The event types of the wire that this client publishes. */
export type EventType = AskingType | "turn_start" | "turn_end";

/** An event as it is sent. */
export interface WireEvent {
  type: EventType;
  thread_id: string;
  event_id: string;
  [field: string]: unknown;
}

const OF_ALL = ["thread_id", "event_id", "turn_id", "is_subagent", "agent_id", "user_id", "user_role", "tenant_id", "run_id", "attended", "timestamp"];
const OF_CALLS = ["tool_call_id", "tool_name", "tool_input", "arguments"];

/** The fields of each type. Another field would have no effect in the gate: a misspelt `tool_input` is a call without arguments. */
export const FIELDS: Readonly<Record<EventType, ReadonlySet<string>>> = {
  turn_start: new Set(OF_ALL),
  turn_end: new Set(OF_ALL),
  model_response: new Set([...OF_ALL, "provider", "response", "message", "error"]),
  tool_call: new Set([...OF_ALL, ...OF_CALLS]),
  tool_result: new Set([...OF_ALL, ...OF_CALLS, "result", "failed"]),
};

/** What a verdict decides. */
export type Action = "allow" | "warn" | "block" | "halt" | "suppress";

/** One reason of a verdict. */
export interface Reason {
  source: string;
  code: string;
  message: string;
  policy_id?: string | null;
}

/** How a response was cut off by a safety system. */
export interface Safety {
  detector?: string;
  category?: string;
  reason_field?: string;
  reason_value?: unknown;
  suppressed_tool_call_count?: number;
  suppressed_tool_call_names?: string[];
  suppressed_tool_call_ids?: string[];
  /** A sentence for the user. */
  user_message?: string;
  extras?: unknown;
  stage?: string;
}

/** A verdict. `docs/contract.md` has the meaning of each field. */
export interface Verdict {
  /** Absent on a verdict that this client made because none came. */
  verdict_id?: string;
  event_id: string;
  type: AskingType;
  thread_id: string;
  turn_id?: string;
  tool_call_id?: string;
  tool_name?: string;
  action: Action;
  /** Whether the tool may run. */
  allows_execution: boolean;
  /** Whether the turn should stop. */
  should_halt: boolean;
  code: string;
  message: string;
  /** `client` on a verdict that this client made because none came. */
  decided_by: string;
  reasons: Reason[];
  count?: number;
  signature?: { tool_name: string; args_hash: string };
  /** The text to give the agent as the result of a call that may not run. */
  synthetic_result?: string;
  /** The text to append to a result. */
  guidance?: string;
  safety?: Safety;
  tool_calls_unreliable?: boolean;
  unrecognized_response?: boolean;
  policy_version?: string;
  agent_id?: string;
  tenant_id?: string;
  /** When the event happened, as the event itself says. */
  timestamp?: string;
}

/** Whether each action lets a tool run. */
const ALLOWS: ReadonlyMap<unknown, boolean> = new Map<Action, boolean>([
  ["allow", true],
  ["warn", true],
  ["block", false],
  ["halt", false],
  ["suppress", false],
]);

/** Returns whether a value is an object that is neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads the verdict of an event. Returns a sentence that names the field and the shape found, if the value is no such verdict: a verdict of
 * another event, an unknown action, or an action that contradicts `allows_execution` must never let a call run.
 */
export function readVerdict(value: unknown, event: WireEvent): Verdict | string {
  if (!isObject(value)) return `the verdict is ${shape(value)}, an object was expected`;
  for (const field of ["event_id", "type", "thread_id"] as const) {
    if (value[field] !== event[field]) return `${field} is not that of the event: it is ${shape(value[field])}`;
  }
  for (const field of ["verdict_id", "code", "message", "decided_by"]) {
    if (typeof value[field] !== "string") return `${field} is ${shape(value[field])}, a string was expected`;
  }
  for (const field of ["synthetic_result", "guidance"]) {
    if (value[field] !== undefined && typeof value[field] !== "string") return `${field} is ${shape(value[field])}, a string was expected`;
  }
  if (value["safety"] !== undefined && !isObject(value["safety"])) return `safety is ${shape(value["safety"])}, an object was expected`;
  const allows = ALLOWS.get(value["action"]);
  if (value["action"] === "suppress" && event.type !== "model_response") return "action is suppress, which no call and no result gets";
  if (allows === undefined) return "action is not one that this client knows; update the client";
  if (value["allows_execution"] !== allows) return "allows_execution contradicts action";
  if (typeof value["should_halt"] !== "boolean") return `should_halt is ${shape(value["should_halt"])}, a boolean was expected`;
  const reasons = Array.isArray(value["reasons"]) ? value["reasons"] : [];
  return { ...value, reasons } as unknown as Verdict;
}

/** Returns the shape of a value in words, never the value: it may be a secret. */
export function shape(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return value === "" ? "an empty string" : "a string";
  if (typeof value === "object") {
    const name = (Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null)?.constructor?.name;
    return name === undefined || name === "Object" ? "an object" : `a ${name}`;
  }
  return `a ${typeof value}`;
}

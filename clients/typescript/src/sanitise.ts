/**
 * Rewrites a response whose calls must not run, so that a host can keep it in its history: the calls go, the text stays, and the text for the
 * user is appended. The cases of `tests/sanitiser_cases.jsonl` say what comes out.
 */

import { MESSAGES, RESPONSES, steps, type CallsAt, type Shape, type Step } from "./readers.js";
import { isObject, type Safety, type Verdict } from "./wire.js";

type Members = Record<string, unknown>;
type IsCall = (value: unknown) => boolean;

/** What a text is in a list of content. */
type Block = (text: string) => unknown;
const typed: Block = (text) => ({ type: "text", text: `\n\n${text}` });
const part: Block = (text) => ({ text });
/** A message of its own, in the output of the Responses API. */
const item: Block = (text) => ({ type: "message", role: "assistant", content: [{ type: "output_text", text }] });

/** Where text for the user stands: the object, the member, and what a list there holds. The first object that is there counts. */
const TEXTS: readonly (readonly [string, string, Block])[] = [
  ["choices[].message", "content", typed],
  ["output.choices[].message", "content", typed],
  ["outputs[].message", "content", typed],
  ["Choices[].Message", "Content", typed],
  ["candidates[].content", "parts", part],
  ["output.message", "content", part],
  ["message", "content", typed],
];

/** Where text stands at the top of a body, if the member is there. */
const TOP_TEXTS: readonly (readonly [string, Block])[] = [
  ["output", item],
  ["content", typed],
  ["text", typed],
  ["result", typed],
];

/** What the record in a LangChain message repeats of `safety`. */
const RECORDED = [
  "detector",
  "reason_field",
  "reason_value",
  "suppressed_tool_call_count",
  "suppressed_tool_call_names",
  "extras",
] as const satisfies readonly (keyof Safety)[];

/**
 * Returns whether a response has to be rewritten. A verdict on a response decides about its calls alone. So a response that the gate gave no
 * verdict on loses its calls, and a response without calls stays as the model gave it.
 */
export function losesCalls({ allows_execution, decided_by }: Verdict, hasCalls: boolean): boolean {
  const isUnread = decided_by === "client" || decided_by === "envelope";
  return !allows_execution && (hasCalls || !isUnread);
}

/** Returns a member of its own: `__proto__` and what an object inherits are none. */
function own(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * Returns a copy of a LangChain message, in any of its serialisations, without calls: neither parsed nor invalid nor raw.
 * `additional_kwargs.safety_termination` records what was removed; other metadata and the id stay.
 */
export function sanitiseMessage<T>(message: T, safety: Safety): T {
  const copy: unknown = structuredClone(message);
  removeAll(copy, MESSAGES, true, safety);
  const wrapper = ["kwargs", "data"].find((name) => isObject(own(copy, name)));
  const messages = own(copy, "messages");
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const inner = wrapper !== undefined ? own(copy, wrapper) : messages === undefined ? copy : last;
  if (!isObject(inner)) return copy as T;
  if (safety.user_message !== undefined) inner["content"] = appended(inner["content"] ?? null, typed, safety.user_message);
  if (!Object.hasOwn(inner, "additional_kwargs")) inner["additional_kwargs"] = {};
  const kwargs = inner["additional_kwargs"];
  const record = RECORDED.filter((name) => safety[name] !== undefined).map((name) => [name, safety[name]]);
  if (isObject(kwargs)) kwargs["safety_termination"] = Object.fromEntries(record);
  return copy as T;
}

/**
 * Returns a copy of a provider's native body without calls. A body that has no place for text, and the events of a stream, get no text for
 * the user.
 */
export function sanitiseResponse<T>(response: T, safety: Safety): T {
  let copy: unknown = structuredClone(response);
  if (Array.isArray(copy)) {
    const left = (copy as unknown[]).filter((event) => !removeAll(event, RESPONSES, false, safety));
    copy = left.filter((event) => event !== null);
  }
  if (removeAll(copy, RESPONSES, false, safety)) return null as T;
  if (!Array.isArray(copy) && safety.user_message !== undefined) appendToBody(copy, safety.user_message);
  return copy as T;
}

/** Returns whether a call is one that must not run: every call, or those that the provider flagged. */
function isSuppressed(call: unknown, at: CallsAt, safety: Safety): boolean {
  if (safety.category !== "tool_flagged") return true;
  for (const path of at.id) {
    const id = path.split(".").reduce(own, call);
    if (typeof id === "string" && id !== "") return safety.suppressed_tool_call_ids?.includes(id) === true;
  }
  return false;
}

/** Returns whether a value is a call that the host runs. */
function counts(value: unknown, at: CallsAt): boolean {
  if (!isObject(value)) return false;
  return at.types === undefined || at.types.some((type) => type === own(value, at.typeMember ?? "type"));
}

/** Removes the calls of a body at the places of all readers, in its wrappers too. Returns whether the body itself is a call. */
function removeAll(body: unknown, shape: Shape, isMessage: boolean, safety: Safety): boolean {
  for (const at of shape.calls) {
    const isCall: IsCall = (value) => counts(value, at) && isSuppressed(value, at, safety);
    const path = steps(at.path);
    if (path.length === 0 && isCall(body)) return true;
    // LangChain's own lists stay, empty.
    remove(body, path, isMessage && path.length === 2, isCall);
  }
  for (const wrapper of shape.wrappers) {
    const path = steps(wrapper);
    atEach(body, path, (inner, replace) => {
      if (isObject(inner) && removeAll(inner, shape, isMessage, safety)) replace(null);
    });
  }
  return false;
}

/**
 * Removes the calls at a path. An empty list of calls goes too, because APIs refuse it, unless it is to be kept; so does an item of a list that
 * was a call and nothing else.
 */
function remove(value: unknown, path: readonly Step[], keepsEmpty: boolean, isCall: IsCall): void {
  const [first, second] = path;
  if (first === undefined) return;
  if (path.length === 1) {
    removeLast(value, first, isCall);
  } else if (path.length === 2 && second === "items" && typeof first === "object" && first.member === "tool_calls") {
    const calls = own(value, first.member);
    if (!Array.isArray(calls)) return;
    removeItems(calls, isCall);
    if (calls.length === 0 && !keepsEmpty) Reflect.deleteProperty(value as Members, first.member);
  } else if (path.length === 2 && first === "items" && typeof second === "object") {
    if (!Array.isArray(value)) return;
    const hasText = (entry: unknown): boolean => own(entry, "text") !== undefined || own(entry, "content") !== undefined;
    removeItems(value, (entry) => !hasText(entry) && isCall(own(entry, second.member)));
    value.forEach((entry) => { removeLast(entry, second, isCall); });
  } else {
    atEach(value, [first], (inner) => { remove(inner, path.slice(1), keepsEmpty, isCall); });
  }
}

function removeLast(value: unknown, step: Step, isCall: IsCall): void {
  if (typeof step === "object") {
    if (isCall(own(value, step.member))) Reflect.deleteProperty(value as Members, step.member);
  } else if (step === "items" && Array.isArray(value)) {
    removeItems(value, isCall);
  }
}

function removeItems(items: unknown[], isCall: IsCall): void {
  items.splice(0, items.length, ...items.filter((entry) => !isCall(entry)));
}

/** Calls a function for every value at a path, with a function that replaces the value. */
function atEach(value: unknown, path: readonly Step[], then: (value: unknown, replace: (value: unknown) => void) => void): void {
  const [first, ...rest] = path;
  if (first === undefined) return;
  const keys = typeof first === "object" ? [first.member] : Array.isArray(value) ? [...value.keys()].slice(first === "last" ? -1 : 0) : [];
  for (const key of keys) {
    const inner: unknown = typeof key === "number" ? (value as unknown[])[key] : own(value, key);
    if (inner === undefined) continue;
    if (rest.length > 0) atEach(inner, rest, then);
    else then(inner, (next) => { Reflect.set(value as object, key, next); });
  }
}

/** Appends the text for the user to a native body, or to the body in its wrapper. Returns whether there was a place for it. */
function appendToBody(body: unknown, text: string): boolean {
  for (const [holder, member, block] of TEXTS) {
    const holders = allAt(body, holder).filter(isObject);
    for (const inner of holders) inner[member] = appended(inner[member] ?? null, block, text);
    if (holders.length > 0) return true;
  }
  for (const [member, block] of TOP_TEXTS) {
    const content = own(body, member);
    if (typeof content === "string" || Array.isArray(content)) {
      (body as Members)[member] = appended(content, block, text);
      return true;
    }
  }
  return RESPONSES.wrappers.some((wrapper) => allAt(body, wrapper).filter((inner) => isObject(inner) && appendToBody(inner, text)).length > 0);
}

/** Returns every value at a path. */
function allAt(body: unknown, path: string): unknown[] {
  const found: unknown[] = [];
  atEach(body, steps(path), (value) => { found.push(value); });
  return found;
}

/** Returns content with a text behind a blank line. */
function appended(content: unknown, block: Block, text: string): unknown {
  if (content === null || content === "") return text;
  if (typeof content === "string") return `${content}\n\n${text}`;
  return Array.isArray(content) ? [...(content as unknown[]), block(text)] : content;
}

/** HTTP: one request with a deadline, a few retries inside it, and the answer as JSON. */

import { Failure } from "./failure.js";
import type { Inject } from "./trace.js";
import { isObject, shape } from "./wire.js";

/** Attempts per request. A repeat is safe: the gate knows an event by its id. */
const ATTEMPTS_MAX = 3;

/** The pause before the second attempt; it doubles. */
const PAUSE_MS = 50;

/** With less time than this left, the gate is not asked again, in milliseconds. */
const LEAST_MS = 20;

/** The answer to a request may have this many bytes for each event. */
const ANSWER_BYTES_MAX = 1_048_576;

/** What the gate's own wait leaves of the deadline, so that its answer comes before the client gives up: a tenth, but no more than this. */
const MARGIN_MS_MAX = 100;

/** The gate refuses a request that asks for a longer wait; after it, the gate is asked again. */
const GATE_WAIT_MS_MAX = 60_000;

/** Texts of an error that are handed on are cut at this many UTF-16 units. */
const MESSAGE_UNITS_MAX = 1024;

/** Where and how requests are sent. */
export interface Endpoint {
  url: URL;
  token: (() => string | Promise<string>) | undefined;
  fetch: typeof globalThis.fetch;
  inject: Promise<Inject>;
}

/** When to stop: by the clock of `performance.now()`, and by the signal of deadline and caller together. */
export interface Limit {
  at: number;
  signal: AbortSignal;
  /** The caller's own signal, whose abort is no failure of the gate. */
  caller: AbortSignal | undefined;
}

/** Returns whether a token is one that an HTTP header can hold. */
export function isToken(token: unknown): boolean {
  return typeof token === "string" && /^[\x21-\x7e]+$/u.test(token);
}

function remaining(limit: Limit): number {
  return limit.at - performance.now();
}

/** Returns the failure of a limit that was reached. Throws the caller's reason, if it was the caller who stopped. */
export function limitReached(limit: Limit): Failure {
  limit.caller?.throwIfAborted();
  return new Failure("deadline_exceeded", "the gate did not answer within the deadline.");
}

async function pause(ms: number, limit: Limit): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      limit.signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    limit.signal.addEventListener("abort", done, { once: true });
  });
}

/** Reads a body of bounded size. */
async function bodyOf(response: Response, bytesMax: number): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let bytes = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > bytesMax) {
      await reader.cancel();
      throw new Failure("verdict_unreadable", `the answer is longer than ${bytesMax} bytes.`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Returns a body's JSON, or undefined where it is none, or where a member stands twice: two readers could read it two ways. */
function parsed(body: string): unknown {
  try {
    const value = JSON.parse(body) as unknown;
    const names = Array.from(body.matchAll(/"(?:[^"\\]|\\.)*"\s*(:)?/g)).filter(([, colon]) => colon !== undefined);
    return names.length === membersOf(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns how many members the objects of a value have. */
function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value).reduce((sum: number, member) => sum + membersOf(member), 0);
  return Array.isArray(value) ? inner : inner + Object.keys(value).length;
}

/** Returns the gate's own code and message from the body of an error, where it has the shape of a verdict. Of a list no verdict is one. */
function said(answer: unknown): { code: string; message: string } | undefined {
  const first: unknown = Array.isArray(answer) ? answer.find((item) => isObject(item) && item["verdict_id"] === undefined) : answer;
  // An error that allows is no answer of the gate.
  if (!isObject(first) || first["allows_execution"] === true || typeof first["code"] !== "string" || typeof first["message"] !== "string") return undefined;
  return { code: first["code"].slice(0, 128), message: first["message"].slice(0, MESSAGE_UNITS_MAX) };
}

/** Returns whether a status says that the gate, or a proxy before it, takes no more requests now. */
function isBusy(status: number): boolean {
  return status === 503 || status === 429;
}

/** Returns the failure that an HTTP status means. */
function failureOf(status: number, answer: unknown): Failure {
  const own = said(answer);
  const text = own?.message ?? `the answer has the HTTP status ${status} and no verdict.`;
  // A call that a verdict of the list stops never fails open.
  const mayOpen = ![answer].flat().some((item: unknown) => isObject(item) && item["verdict_id"] !== undefined && item["allows_execution"] !== true);
  if (status === 504) return new Failure("deadline_exceeded", text, mayOpen);
  if (isBusy(status)) return new Failure(own?.code ?? "gate_overloaded", text, mayOpen);
  return new Failure(own?.code ?? "verdict_unreadable", text, false, takenIn(answer));
}

/** Returns the places of the events that the gate refuses because their ids are those of other events. */
function takenIn(answer: unknown): number[] {
  return [answer].flat().flatMap((item: unknown, at) => (isObject(item) && item["action"] === "block" && item["code"] === "event_id_taken" ? [at] : []));
}

/** Returns the milliseconds of a `Retry-After` header in seconds, or undefined. A date would need the host's clock. */
function retryAfter(response: Response): number | undefined {
  const header = response.headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}

/** `retry` is the least pause before the next attempt, in milliseconds; `now` if the gate has waited already; undefined where none helps. */
type Attempt = { answer: unknown } | { failure: Failure; retry: number | "now" | undefined };

/** Returns the least pause after an HTTP status that is an error. After 504 the same events are asked about again. */
function retryOf(response: Response): number | "now" | undefined {
  if (isBusy(response.status)) return retryAfter(response) ?? PAUSE_MS;
  return response.status === 504 ? "now" : undefined;
}

async function attempt(endpoint: Endpoint, body: string, count: number, limit: Limit): Promise<Attempt> {
  const headers: Record<string, string> = { accept: "application/json", "content-type": "application/json" };
  (await endpoint.inject)(headers);
  if (endpoint.token !== undefined) {
    const token = await endpoint.token();
    // A person erred, so that a gate that fails open does not allow either.
    if (!isToken(token)) throw new Failure("gate_unreachable", `token is ${shape(token)} that no HTTP header holds; give the token alone.`, false);
    headers["authorization"] = `Bearer ${token}`;
  }
  const left = remaining(limit);
  const wait = Math.floor(left - Math.min(left / 10, MARGIN_MS_MAX));
  headers["prefer"] = `wait=${Math.min(Math.max(1, wait), GATE_WAIT_MS_MAX)}`;
  // A redirect would carry the event to another host.
  const init: RequestInit = { method: "POST", headers, body, signal: limit.signal, redirect: "manual" };
  const response = await endpoint.fetch(new URL("v1/events", endpoint.url), init);
  const answer = parsed(await bodyOf(response, ANSWER_BYTES_MAX * count));
  if (response.status === 202) return { answer: undefined };
  if (response.status === 200) {
    if (answer !== undefined) return { answer };
    return { failure: new Failure("verdict_unreadable", "the answer is no JSON: is a proxy between client and gate?"), retry: undefined };
  }
  return { failure: failureOf(response.status, answer), retry: retryOf(response) };
}

async function aborted(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    const abort = (): void => { reject(new Error("aborted")); };
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}

async function attemptOrFailure(endpoint: Endpoint, body: string, count: number, limit: Limit): Promise<Attempt> {
  try {
    // A token function and another `fetch` may know nothing of the signal.
    return await Promise.race([attempt(endpoint, body, count, limit), aborted(limit.signal)]);
  } catch (error) {
    if (error instanceof Failure) return { failure: error, retry: undefined };
    if (limit.signal.aborted) return { failure: limitReached(limit), retry: undefined };
    // The error's own text may hold the URL with what a user put into it.
    return { failure: new Failure("gate_unreachable", "the connection to the gate failed; is it running, and is `url` right?"), retry: PAUSE_MS };
  }
}

/**
 * Posts events and returns the answer's JSON, or undefined for an answer without one (202).
 *
 * @param body An event or an array of events, as JSON.
 * @param count How many events that are.
 * @throws {Failure} if no answer came within the limit, or the answer is an error. The caller's own reason, if the caller stopped.
 */
export async function post(endpoint: Endpoint, body: string, count: number, limit: Limit): Promise<unknown> {
  for (let made = 1, pauseMs = PAUSE_MS; ; made += 1, pauseMs *= 2) {
    const outcome = await attemptOrFailure(endpoint, body, count, limit);
    if ("answer" in outcome) return outcome.answer;
    const { retry, failure } = outcome;
    const wait = retry === undefined ? Infinity : retry === "now" ? 0 : Math.max(retry, pauseMs);
    if (made >= ATTEMPTS_MAX || wait + LEAST_MS > remaining(limit)) throw failure;
    if (wait > 0) await pause(wait, limit);
    if (limit.signal.aborted) {
      limit.caller?.throwIfAborted();
      throw failure;
    }
  }
}

/** The gate: asks before a tool runs and reports what it gave. A question is never left without a verdict. */

import { Failure, Failures, type Counts, type FailureCode, type FailureMode } from "./failure.js";
import { NotJson, checkEscapes, lenient, resultOf, sha256, strict } from "./json.js";
import { Slots } from "./slots.js";
import { loadInject } from "./trace.js";
import { isToken, limitReached, post, type Endpoint, type Limit } from "./transport.js";
import { Turn, startTurn, type TurnOptions } from "./turn.js";
import { FIELDS, isObject, readVerdict, shape } from "./wire.js";
import type { Attribution, EventBase, EventType, ModelResponse, ToolCall, ToolResult, Verdict, WireEvent } from "./wire.js";

const THREAD_ID_BYTES_MAX = 256;
const EVENT_ID_BYTES_MAX = 128;

/** A timer of a month or more would fire at once. */
const DEADLINE_MS_MAX = 600_000;

/** How the ids of events end. */
const SUFFIXES: Readonly<Record<EventType, string>> = {
  turn_start: "boundary",
  turn_end: "boundary",
  model_response: "response",
  tool_call: "call",
  tool_result: "result",
};

/** The codes for what JSON cannot hold. */
const UNSENDABLE: Readonly<Partial<Record<EventType, FailureCode>>> = {
  model_response: "response_unsendable",
  tool_call: "arguments_unsendable",
  tool_result: "result_unsendable",
};

/** The fields that tell two events of one type and one call id apart. */
const CONTENT = ["arguments", "error", "failed", "message", "response", "result", "tool_input", "tool_name"];

/** How many hex digits of the hash of an event's content stand in an id. */
const CONTENT_DIGITS = 16;

/** The fields that hold a model's answer. */
const BODIES: ReadonlySet<string> = new Set(["response", "message", "error"]);

/** How a gate is reached and how it fails. */
export interface GateOptions {
  /** Where `tollgate serve` or `tollgate dev` listens. Default: `http://127.0.0.1:7878`. */
  url?: string;
  /** The bearer token, or a function that returns the token of the moment. */
  token?: string | (() => string | Promise<string>);
  /** How long a question may take with everything, in milliseconds. Default: 2000. */
  deadlineMs?: number;
  /** What follows when no verdict comes: `closed` (the default) blocks, `open` allows, counts and logs. */
  onFailure?: FailureMode;
  /** Requests under way at once; more wait within their deadline. Default: 256. */
  inFlightMax?: number;
  /** Who acts, on every event that does not say otherwise. */
  attribution?: Attribution;
  /** Takes a line at most once a minute while verdicts are missing. Default: `console.warn`. */
  log?: (line: string) => void;
  /** Sends requests. Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** Options of one question. */
export interface AskOptions {
  /** Aborting it rejects the question with the signal's reason. */
  signal?: AbortSignal;
  /** In place of the gate's own deadline, in milliseconds. */
  deadlineMs?: number;
}

function within(name: string, value: number, most: number): number {
  if (Number.isFinite(value) && value >= 1 && value <= most) return value;
  throw new TypeError(`${name} is ${Number.isFinite(value) ? "out of bounds" : shape(value)}; give a number from 1 to ${most}`);
}

function baseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new TypeError("url is no HTTP URL; give one such as http://127.0.0.1:7878");
  }
  if (url.username !== "" || url.password !== "") throw new TypeError("url holds credentials; give them as token");
  if (url.search !== "" || url.hash !== "") throw new TypeError("url has a query or a fragment, which have no effect; leave them out");
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Asks Tollgate over HTTP. One gate serves a process: it may be used by any number of agents at once. */
export class Gate {
  private readonly endpoint: Endpoint;
  private readonly failures: Failures;
  private readonly slots: Slots;
  private readonly deadlineMs: number;
  private readonly attribution: Attribution;
  private readonly underWay = new Set<Promise<unknown>>();
  private isClosed = false;

  /** @throws {TypeError} that names the option, if an option has no meaning. */
  constructor(options: GateOptions = {}) {
    const { token, onFailure = "closed" } = options;
    if (!["closed", "open"].includes(onFailure)) throw new TypeError("onFailure is neither `closed` nor `open`");
    if (typeof token === "string" && !isToken(token)) {
      throw new TypeError("token is empty, or has a character that no HTTP header holds, such as a line break at its end; give the token alone");
    }
    this.deadlineMs = within("deadlineMs", options.deadlineMs ?? 2000, DEADLINE_MS_MAX);
    this.slots = new Slots(Math.floor(within("inFlightMax", options.inFlightMax ?? 256, Number.MAX_SAFE_INTEGER)));
    this.attribution = options.attribution ?? {};
    this.failures = new Failures(onFailure, options.log ?? ((line) => { console.warn(line); }));
    this.endpoint = {
      url: baseUrl(options.url ?? "http://127.0.0.1:7878"),
      token: typeof token === "string" ? () => token : token,
      fetch: options.fetch ?? ((...request) => globalThis.fetch(...request)),
      inject: loadInject(),
    };
  }

  /** Returns what was counted since the gate was made. */
  get counts(): Readonly<Counts & { in_flight: number }> {
    return { ...this.failures.counts, in_flight: this.slots.inUse };
  }

  /** Reports a model's answer. Await the verdict before the answer's first tool call: `suppress` means that no call of the answer may run. */
  async modelResponse(event: ModelResponse, options: AskOptions = {}): Promise<Verdict> {
    return (await this.ask("model_response", [event], options, false))[0] as Verdict;
  }

  /** Asks whether a tool may run. */
  async toolCall(event: ToolCall, options: AskOptions = {}): Promise<Verdict> {
    return (await this.ask("tool_call", [event], options, false))[0] as Verdict;
  }

  /** Asks about the calls of one answer with one request. Returns their verdicts in the same order. */
  async toolCalls(events: readonly ToolCall[], options: AskOptions = {}): Promise<Verdict[]> {
    return events.length === 0 ? [] : await this.ask("tool_call", events, options, true);
  }

  /** Reports what a tool gave. Do it for every tool that ran, failed or not: loops are found by results. */
  async toolResult(event: ToolResult, options: AskOptions = {}): Promise<Verdict> {
    return (await this.ask("tool_result", [event], options, false))[0] as Verdict;
  }

  /** Starts a turn of a thread, and ends it when it is disposed of: `await using turn = await gate.turn("thread-1")`. */
  turn(thread: string | TurnOptions): Promise<Turn>;
  /** Runs a function within a turn of a thread, and ends the turn in any case. */
  turn<T>(thread: string | TurnOptions, run: (turn: Turn) => T | Promise<T>): Promise<T>;
  async turn<T>(thread: string | TurnOptions, run?: (turn: Turn) => T | Promise<T>): Promise<T | Turn> {
    return await startTurn(this, typeof thread === "string" ? { thread_id: thread } : thread, run);
  }

  /** Publishes the start or the end of a turn. Never rejects: the turn's id on its events marks the turn too. */
  async boundary(type: "turn_start" | "turn_end", event: EventBase, options: AskOptions = {}): Promise<void> {
    try {
      await this.send([await this.wireEvent(type, event)], options, false);
    } catch (error) {
      this.failures.boundaryLost(error instanceof Failure ? error : new Failure("gate_unreachable", "a turn boundary was not sent."));
    }
  }

  /** Blocks every later question, and waits for those under way. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.allSettled([...this.underWay]);
  }

  /** Closes the gate at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async ask(type: EventType, events: readonly EventBase[], options: AskOptions, isArray: boolean): Promise<Verdict[]> {
    this.failures.counts.asked += events.length;
    const named: WireEvent[] = events.map((event) => ({ type, thread_id: shown(event.thread_id), event_id: shown(event.event_id) }));
    try {
      const wire: WireEvent[] = [];
      for (const [at, event] of events.entries()) {
        const made = await this.wireEvent(type, event);
        named[at] = made;
        wire.push(made);
      }
      const answer = await this.send(wire, options, isArray);
      return this.verdicts(wire, answer, isArray);
    } catch (error) {
      options.signal?.throwIfAborted();
      const failure = error instanceof Failure ? error : new Failure("invalid_event", "the event could not be written as JSON.");
      return named.map((event) => this.failures.verdict(event, failure));
    }
  }

  /** Reads the answer. A verdict that cannot be read blocks its own call only. */
  private verdicts(events: WireEvent[], answer: unknown, isArray: boolean): Verdict[] {
    const items: unknown[] = isArray && Array.isArray(answer) && answer.length === events.length ? answer : isArray ? [] : [answer];
    return events.map((event, at) => {
      const verdict = readVerdict(items[at], event);
      if (typeof verdict === "string") return this.failures.verdict(event, new Failure("verdict_unreadable", `${verdict}.`));
      this.failures.counts.answered += 1;
      return verdict;
    });
  }

  private async send(events: WireEvent[], options: AskOptions, isArray: boolean): Promise<unknown> {
    if (this.isClosed) throw new Failure("client_closed", "the gate's client was closed.");
    const deadlineMs = within("deadlineMs", options.deadlineMs ?? this.deadlineMs, DEADLINE_MS_MAX);
    const timer = new AbortController();
    const timeout = setTimeout(() => { timer.abort(); }, deadlineMs);
    const signal = options.signal === undefined ? timer.signal : AbortSignal.any([options.signal, timer.signal]);
    const limit: Limit = { at: performance.now() + deadlineMs, signal, caller: options.signal };
    const sending = this.inSlot(limit, () => this.exchange(events, limit, isArray));
    this.underWay.add(sending);
    try {
      return await sending;
    } finally {
      clearTimeout(timeout);
      this.underWay.delete(sending);
    }
  }

  /** Posts events. Some servers of models give the same id to several calls of a turn: an event whose id is taken is asked about once more. */
  private async exchange(events: WireEvent[], limit: Limit, isArray: boolean): Promise<unknown> {
    const posted = async (): Promise<unknown> => {
      await setAllApart(events);
      return await post(this.endpoint, JSON.stringify(isArray ? events : events[0]), events.length, limit);
    };
    try {
      return await posted();
    } catch (error) {
      const taken = error instanceof Failure ? error.taken : [];
      if (taken.length === 0) throw error;
      for (const event of taken.flatMap((at) => events[at] ?? [])) await setApart(event, () => false);
      return await posted();
    }
  }

  private async inSlot(limit: Limit, run: () => Promise<unknown>): Promise<unknown> {
    try {
      await this.slots.acquire(limit.signal);
    } catch {
      limitReached(limit);
      throw new Failure("client_busy", "too many questions are under way in this client; raise `inFlightMax`, or ask less at once.");
    }
    try {
      return await run();
    } finally {
      this.slots.release();
    }
  }

  /** Returns an event as it is sent. */
  private async wireEvent(type: EventType, event: EventBase): Promise<WireEvent> {
    const given = Object.entries<unknown>({ ...event }).filter(([, value]) => value !== undefined);
    const { thread_id, event_id, response_id, ...fields }: Record<string, unknown> = { ...this.attribution, ...Object.fromEntries(given) };
    const thread = text("thread_id", thread_id, THREAD_ID_BYTES_MAX);
    const id = event_id === undefined ? await derivedId(type, fields, response_id) : text("event_id", event_id, EVENT_ID_BYTES_MAX);
    const wire: WireEvent = { type, thread_id: thread, event_id: id };
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined) continue;
      if (!FIELDS[type].has(name)) throw new Failure("invalid_event", `a ${type} has no field ${name.slice(0, 64)}; leave it out, or correct its name.`);
      try {
        if (name === "result") wire[name] = await resultOf(value);
        // An SDK's response may be an object of its own class.
        else wire[name] = BODIES.has(name) ? lenient(value) : strict(value, name);
        if (name === "arguments") checkEscapes(value);
      } catch (error) {
        throw new Failure(UNSENDABLE[type] ?? "invalid_event", error instanceof NotJson ? `${error.message}.` : `${name} cannot be read.`);
      }
    }
    if (type === "tool_result" && wire["result"] === undefined) wire["result"] = null;
    checkCall(wire);
    return wire;
  }
}

/** Returns an id as a verdict of this client repeats it: a text, or the empty text for anything else. */
function shown(id: unknown): string {
  return typeof id === "string" ? id : "";
}

/**
 * Returns an id.
 *
 * @throws {Failure} for a value that is no text, empty or longer than the contract allows.
 */
function text(name: string, value: unknown, bytesMax: number): string {
  if (typeof value !== "string" || value === "") throw new Failure("invalid_event", `${name} is ${shape(value)}; send a string.`);
  if (!value.isWellFormed()) throw new Failure("invalid_event", `${name} is a string with half a surrogate pair; send well-formed text.`);
  if (new TextEncoder().encode(value).length > bytesMax) {
    throw new Failure("invalid_event", `${name} is longer than ${bytesMax} bytes; send a shorter id.`);
  }
  return value;
}

/** @throws {Failure} for a call whose arguments the gate would take for none, or for others. */
function checkCall(wire: WireEvent): void {
  if (wire.type !== "tool_call" && wire.type !== "tool_result") return;
  for (const name of ["tool_call_id", "tool_name"]) {
    if (typeof wire[name] !== "string") throw new Failure("invalid_event", `${name} is ${shape(wire[name])}; send a string.`);
  }
  const { tool_input: input, arguments: json } = wire;
  if (input !== undefined && json !== undefined) {
    throw new Failure("invalid_event", "tool_input and arguments are both there; send one of them.");
  }
  if (input !== undefined && input !== null && !isObject(input)) {
    throw new Failure("invalid_event", `tool_input is ${shape(input)}; send an object, or a JSON text as arguments.`);
  }
  if (json !== undefined && json !== null && typeof json !== "string") {
    throw new Failure("invalid_event", `arguments is ${shape(json)}; send a JSON text, or an object as tool_input.`);
  }
}

/** Returns the id that a host's repeat of the same event has too, or a random id where nothing names the event. */
async function derivedId(type: EventType, { turn_id: turn, tool_call_id: call }: Record<string, unknown>, response: unknown): Promise<string> {
  const isCall = type === "tool_call" || type === "tool_result";
  const name = isCall ? call : type === "model_response" ? response : type;
  const suffix = SUFFIXES[type];
  if (typeof name !== "string" || name === "") return `${crypto.randomUUID()}/${suffix}`;
  const ofResponse = isCall && typeof response === "string" && response !== "" ? `${response}/` : "";
  return await shortened(`${typeof turn === "string" ? turn : ""}/${ofResponse}${name}/${suffix}`);
}

/** Gives an event, whose id is that of another event, an id that follows from its content: a repeat gets the same id again. */
async function setApart(event: WireEvent, isTaken: (id: string) => boolean): Promise<void> {
  const content = Object.fromEntries(CONTENT.flatMap((name) => (event[name] === undefined ? [] : [[name, event[name]]])));
  const hash = (await sha256(JSON.stringify(content))).slice(0, CONTENT_DIGITS);
  do event.event_id = await shortened(`${event.event_id}/${hash}`);
  while (isTaken(event.event_id));
}

/** Gives each event of a request an id of its own: calls of one response may share an id too. */
async function setAllApart(events: WireEvent[]): Promise<void> {
  const ids = new Set<string>();
  for (const event of events) {
    if (ids.has(event.event_id)) await setApart(event, (id) => ids.has(id));
    ids.add(event.event_id);
  }
}

/** Returns an id as it is, or, if the contract does not allow so long an id, its hash with its last part behind it. */
async function shortened(id: string): Promise<string> {
  return new TextEncoder().encode(id).length <= EVENT_ID_BYTES_MAX ? id : `${await sha256(id)}/${id.slice(id.lastIndexOf("/") + 1)}`;
}

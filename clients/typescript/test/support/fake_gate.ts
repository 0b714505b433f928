/** A gate for tests: it speaks the contract of `POST /v1/events`, keeps what it was asked, and fails as it is told. */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { Validator, type Schema } from "@cfworker/json-schema";
import type { Safety, Verdict } from "@tollgate/client";

import { REPOSITORY } from "./paths.js";

/** An event as it came over the wire. */
export type Received = Record<string, unknown> & { type: string; thread_id: string; event_id: string };

/** A request as it came. */
export interface Request {
  method: string | undefined;
  path: string | undefined;
  headers: IncomingMessage["headers"];
  body: unknown;
}

/** What a fake gate says to an event; what is left out is that of a plain allow. */
export type Rule = (event: Received) => Partial<Verdict> | undefined;

/** Takes over the answer to a request. Returns false to let the gate answer. */
export type Fault = (response: ServerResponse, request: Request) => boolean;

/** Returns the verdict of the contract for an event. */
export function verdictOf(event: Received, change: Partial<Verdict> = {}): Record<string, unknown> {
  const action = change.action ?? "allow";
  const allows = action === "allow" || action === "warn";
  const { thread_id, turn_id, tool_call_id, tool_name } = event;
  const code = change.code ?? "allow";
  const verdict: Record<string, unknown> = {
    verdict_id: createHash("sha256").update(`${thread_id}\0${event.event_id}`).digest("hex").slice(0, 32),
    event_id: event.event_id,
    type: event.type,
    thread_id,
    turn_id,
    tool_call_id,
    tool_name,
    action,
    allows_execution: allows,
    should_halt: action === "halt",
    code,
    message: "",
    decided_by: "none",
    reasons: [],
    policy_version: `sha256:${"0".repeat(64)}`,
    ...(allows || event.type !== "tool_call" ? {} : { synthetic_result: `{"error": "${code}"}` }),
    ...change,
  };
  return Object.fromEntries(Object.entries(verdict).filter(([, value]) => value !== undefined));
}

function validator(name: string): (value: unknown) => void {
  const schema = JSON.parse(readFileSync(`${REPOSITORY}/docs/schemas/${name}.json`, "utf8")) as Schema;
  const validator = new Validator(schema, "7", false);
  return (value) => {
    const { valid, errors } = validator.validate(value);
    if (!valid) throw new Error(`${name}: ${JSON.stringify(errors)}`);
  };
}
const checkEvent = validator("event");
const checkVerdict = validator("verdict");

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
}

/** A fake gate that listens on a free port. */
export class FakeGate {
  /** Every request, in order. */
  readonly requests: Request[] = [];
  /** What it says to events. */
  rule: Rule = () => undefined;
  /** What it does in place of an answer. */
  fault: Fault | undefined;
  /** Events that break the contract's schema, and verdicts of this gate that do. */
  private readonly broken: unknown[] = [];
  private readonly server = createServer((request, response) => void this.answer(request, response));
  private readonly arrivals = new Set<() => void>();

  /** Starts a gate. `port` is for a gate that comes back. */
  static async start(port = 0): Promise<FakeGate> {
    const gate = new FakeGate();
    await new Promise<void>((resolve) => gate.server.listen(port, "127.0.0.1", resolve));
    return gate;
  }

  get listening(): boolean {
    return this.server.listening;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Every event, in order. */
  get events(): Received[] {
    return this.requests.flatMap(({ body }) => body as Received | Received[]);
  }

  /** The events of one type. */
  of(type: string): Received[] {
    return this.events.filter((event) => event.type === type);
  }

  /** Waits until this many requests have come. */
  async arrived(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => this.arrivals.add(resolve));
  }

  /** Stops listening and breaks every connection. Throws what broke the contract. */
  async stop(): Promise<void> {
    if (!this.listening) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
    if (this.broken.length > 0) throw new Error(String(this.broken[0]));
  }

  private check(check: (value: unknown) => void, value: unknown): void {
    try {
      check(value);
    } catch (error) {
      this.broken.push(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = { method: message.method, path: message.url, headers: message.headers, body: await bodyOf(message) };
    this.requests.push(request);
    for (const event of [request.body].flat()) this.check(checkEvent, event);
    for (const wake of this.arrivals) wake();
    this.arrivals.clear();
    if (this.fault?.(response, request) === true) return;
    const { body } = request;
    const answers = (Array.isArray(body) ? body : [body]).map((event: Received) =>
      event.type.startsWith("turn_") ? undefined : verdictOf(event, this.rule(event)),
    );
    for (const verdict of answers) if (verdict !== undefined) this.check(checkVerdict, verdict);
    if (answers[0] === undefined) response.writeHead(202).end();
    else json(response, 200, Array.isArray(body) ? answers : answers[0]);
  }
}

/** Returns what suppresses a response. */
export function suppressed(change: Partial<Safety>): Partial<Verdict> {
  const safety = {
    detector: "native",
    category: "safety",
    reason_field: "finish_reason",
    reason_value: "content_filter",
    suppressed_tool_call_count: 1,
    suppressed_tool_call_names: ["bash"],
    suppressed_tool_call_ids: ["c1"],
    user_message: "The provider stopped this.",
    extras: {},
    ...change,
  };
  return { action: "suppress", code: "safety_terminated", decided_by: "safety", safety };
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): true {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  return true;
}

/** Returns a fault that refuses another event under the id of an event, as a gate does that knows its ids. */
export function refusingTaken(): Fault {
  const known = new Map<string, string>();
  return (response, { body }) => {
    const answers = ([body].flat() as Received[]).map((event) => {
      const text = JSON.stringify(event);
      const earlier = known.get(event.event_id) ?? text;
      known.set(event.event_id, earlier);
      return verdictOf(event, earlier === text ? {} : { action: "block", code: "event_id_taken", message: "event_id: taken" });
    });
    const status = answers.some(({ code }) => code === "event_id_taken") ? 409 : 200;
    return json(response, status, Array.isArray(body) ? answers : answers[0]);
  };
}

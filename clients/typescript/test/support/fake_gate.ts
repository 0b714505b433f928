/** A gate for tests: it speaks the contract of `POST /v1/events`, keeps what it was asked, and fails as it is told. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import type { Verdict } from "@tollgate/client";

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
    verdict_id: `v-${thread_id}-${event.event_id}`,
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
    policy_version: "sha256:0",
    ...(allows || event.type !== "tool_call" ? {} : { synthetic_result: `{"error": "${code}"}` }),
    ...change,
  };
  return Object.fromEntries(Object.entries(verdict).filter(([, value]) => value !== undefined));
}

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

  /** Stops listening and breaks every connection. */
  async stop(): Promise<void> {
    if (!this.listening) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = { method: message.method, path: message.url, headers: message.headers, body: await bodyOf(message) };
    this.requests.push(request);
    for (const wake of this.arrivals) wake();
    this.arrivals.clear();
    if (this.fault?.(response, request) === true) return;
    const { body } = request;
    const answers = (Array.isArray(body) ? body : [body]).map((event: Received) =>
      event.type.startsWith("turn_") ? undefined : verdictOf(event, this.rule(event)),
    );
    if (answers[0] === undefined) response.writeHead(202).end();
    else json(response, 200, Array.isArray(body) ? answers : answers[0]);
  }
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): true {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  return true;
}

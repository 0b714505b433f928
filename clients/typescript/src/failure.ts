/** What stands in for a verdict that did not come: a block, unless the gate's user asked for fail-open. Each is counted. */

import type { AskingType, Verdict, WireEvent } from "./wire.js";

/** Why no verdict came. */
export type FailureCode =
  /** The deadline passed, here or in the gate. */
  | "deadline_exceeded"
  /** No connection, or it broke. */
  | "gate_unreachable"
  /** The gate has too much under way. */
  | "gate_overloaded"
  /** This client has too much under way. */
  | "client_busy"
  /** What came is no verdict of this event, or an error without one. */
  | "verdict_unreadable"
  /** JSON cannot hold the arguments, the result or the response, so the event was not sent. */
  | "arguments_unsendable"
  | "result_unsendable"
  | "response_unsendable"
  /** The event breaks another rule, so it was not sent. */
  | "invalid_event"
  /** The gate was closed. */
  | "client_closed";

/** The failures after which a gate that fails open allows. After the others a call never runs: something answered, or a person erred. */
const MAY_OPEN: ReadonlySet<string> = new Set<FailureCode>(["deadline_exceeded", "gate_unreachable", "gate_overloaded", "client_busy"]);

/** A failure on the way to a verdict. */
export class Failure extends Error {
  override name = "Failure";

  /**
   * @param code What went wrong; a refusal by the gate has the gate's own code.
   * @param mayOpen Whether a gate that fails open allows after it.
   * @param taken The places of the request's events whose ids are those of other events.
   */
  constructor(
    readonly code: string,
    message: string,
    readonly mayOpen: boolean = MAY_OPEN.has(code),
    readonly taken: readonly number[] = [],
  ) {
    super(message);
  }
}

/** How a gate fails: `closed` blocks, `open` lets calls run without a verdict. */
export type FailureMode = "closed" | "open";

/** Counts since a gate was made. */
export interface Counts {
  /** Events that were asked about. */
  asked: number;
  /** Verdicts of the gate. */
  answered: number;
  /** Calls that were blocked because no verdict came. */
  failed_closed: number;
  /** Calls that were allowed because no verdict came and the gate fails open. */
  failed_open: number;
  /** Turn boundaries that could not be published; the turn's id marks the turn all the same. */
  boundaries_lost: number;
}

const LOG_EVERY_MS = 60_000;

/** Makes the verdicts of failures, counts them, and logs them once a minute. */
export class Failures {
  readonly counts: Counts = { asked: 0, answered: 0, failed_closed: 0, failed_open: 0, boundaries_lost: 0 };
  private loggedAt = -Infinity;

  /** @param now Returns milliseconds of a clock that never goes back. */
  constructor(
    private readonly mode: FailureMode,
    private readonly log: (line: string) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Returns the verdict that stands in for one that did not come. */
  verdict(event: WireEvent, failure: Failure): Verdict {
    const isOpen = this.mode === "open" && failure.mayOpen;
    if (isOpen) this.counts.failed_open += 1;
    else this.counts.failed_closed += 1;
    this.report(failure);
    const message = isOpen ? `Allowed without a verdict: ${failure.message}` : `Not allowed: ${failure.message}`;
    const verdict: Verdict = {
      event_id: event.event_id,
      type: event.type as AskingType,
      thread_id: event.thread_id,
      action: isOpen ? "allow" : "block",
      allows_execution: isOpen,
      // The call is refused; that the turn should stop, only the gate can say.
      should_halt: false,
      code: failure.code,
      message,
      decided_by: "client",
      reasons: [{ source: "client", code: failure.code, message }],
    };
    for (const field of ["turn_id", "tool_call_id", "tool_name"] as const) {
      const value = event[field];
      if (typeof value === "string") verdict[field] = value;
    }
    if (!isOpen && event.type === "tool_call") verdict.synthetic_result = `Tool call not executed (${failure.code}): ${failure.message}`;
    return verdict;
  }

  /** Counts a turn boundary that could not be published. */
  boundaryLost(failure: Failure): void {
    this.counts.boundaries_lost += 1;
    this.report(failure);
  }

  private report(failure: Failure): void {
    const now = this.now();
    if (now - this.loggedAt < LOG_EVERY_MS) return;
    this.loggedAt = now;
    const { failed_closed, failed_open, boundaries_lost } = this.counts;
    const counts = `${failed_closed} blocked, ${failed_open} allowed, ${boundaries_lost} turn boundaries lost`;
    try {
      this.log(`tollgate: no verdict (${failure.code}): ${failure.message} Since the start: ${counts}.`);
    } catch {
      // A logger that fails must not decide about a call.
    }
  }
}

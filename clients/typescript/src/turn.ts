/** A turn: what an agent does from a user's message to its answer. It fills in thread, turn and attribution. */

import type { AskOptions, Gate } from "./gate.js";
import type { Attribution, ModelResponse, ToolCall, ToolResult, Verdict } from "./wire.js";

/** Which turn of which thread. */
export interface TurnOptions extends Attribution {
  thread_id: string;
  /** Default: a random id. Give the same id when a turn is resumed. */
  turn_id?: string;
  is_subagent?: boolean;
}

type Without<T> = Omit<T, "thread_id" | "turn_id" | "is_subagent">;

/** A turn that runs. Its methods are those of the gate. */
export class Turn {
  /** Whether a verdict said that the turn should stop. */
  halted: Verdict | undefined;
  /** The ids of responses by the ids of their calls, as far as an adapter has seen them. */
  readonly responses = new Map<string, string>();
  private isEnded = false;

  /** Use `Gate.turn`. */
  constructor(
    private readonly gate: Gate,
    private readonly about: TurnOptions & { turn_id: string },
  ) {}

  /** The thread of this turn. */
  get threadId(): string {
    return this.about.thread_id;
  }

  /** The id of this turn. */
  get turnId(): string {
    return this.about.turn_id;
  }

  /** As `Gate.modelResponse`. */
  async modelResponse(event: Without<ModelResponse>, options?: AskOptions): Promise<Verdict> {
    return this.note(await this.gate.modelResponse(this.within(event), options));
  }

  /** As `Gate.toolCall`. */
  async toolCall(event: Without<ToolCall>, options?: AskOptions): Promise<Verdict> {
    return this.note(await this.gate.toolCall(this.within(event), options));
  }

  /** As `Gate.toolCalls`. */
  async toolCalls(events: readonly Without<ToolCall>[], options?: AskOptions): Promise<Verdict[]> {
    const verdicts = await this.gate.toolCalls(events.map((event) => this.within(event)), options);
    return verdicts.map((verdict) => this.note(verdict));
  }

  /** As `Gate.toolResult`. */
  async toolResult(event: Without<ToolResult>, options?: AskOptions): Promise<Verdict> {
    return this.note(await this.gate.toolResult(this.within(event), options));
  }

  /**
   * Runs a function within a turn of a subagent, whose thread is `<this thread>/<name>`, so that its calls are not counted with those of this
   * agent.
   *
   * @throws {TypeError} for a name that is empty or holds a slash, which would name the subagent of another thread.
   */
  async subagent<T>(name: string, run: (turn: Turn) => T | Promise<T>): Promise<T> {
    const about = { ...this.about, thread_id: childThread(this.threadId, name), turn_id: crypto.randomUUID(), is_subagent: true };
    return await this.gate.turn(about, run);
  }

  /** Ends the turn. A second end does nothing. */
  async end(): Promise<void> {
    if (this.isEnded) return;
    this.isEnded = true;
    await this.gate.boundary("turn_end", this.about);
  }

  /** Ends the turn at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /** Returns an event of this turn: what it says of who acts counts, but thread and turn are those of the turn. */
  private within<T extends object>(event: T): T & TurnOptions {
    const { thread_id, turn_id, is_subagent } = this.about;
    return { ...this.about, ...event, thread_id, turn_id, ...(is_subagent === undefined ? {} : { is_subagent }) };
  }

  private note(verdict: Verdict): Verdict {
    if (verdict.should_halt) this.halted ??= verdict;
    return verdict;
  }
}

/**
 * Returns the thread of a subagent.
 *
 * @throws {TypeError} for a name that is empty or holds a slash.
 */
export function childThread(thread: string, name: string): string {
  if (name === "" || name.includes("/")) throw new TypeError("the name of a subagent is empty or holds a slash; give a name without");
  return `${thread}/${name}`;
}

/** Starts a turn; with a function, runs it and ends the turn. */
export async function startTurn<T>(gate: Gate, about: TurnOptions, run?: (turn: Turn) => T | Promise<T>): Promise<T | Turn> {
  const turn = new Turn(gate, { ...about, turn_id: about.turn_id ?? crypto.randomUUID() });
  await gate.boundary("turn_start", { ...about, turn_id: turn.turnId });
  if (run === undefined) return turn;
  try {
    return await run(turn);
  } finally {
    await turn.end();
  }
}

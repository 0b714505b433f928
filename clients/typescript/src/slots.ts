/** A bound on what is under way at once: who comes later waits for a place, in order. */
export class Slots {
  private readonly waiting: (() => void)[] = [];
  private taken = 0;

  constructor(private readonly max: number) {}

  /** Returns how many places are taken. */
  get inUse(): number {
    return this.taken;
  }

  /**
   * Waits for a place. The caller gives it back with `release`.
   *
   * @throws the signal's reason, if the signal is aborted before a place is free.
   */
  async acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.taken < this.max) {
      this.taken += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a signal's reason is the caller's own value
        reject(signal.reason);
      };
      const enter = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.waiting.push(enter);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Gives a place back: to the first who waits, if anybody does. */
  release(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.taken -= 1;
    else next();
  }
}

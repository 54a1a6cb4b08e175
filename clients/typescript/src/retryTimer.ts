/** Whether an interrupted call should be retried, how long to wait before, and when to stop. */

import { setTimeout as sleep } from "node:timers/promises";

import { Code, ConsumerStalled, DeadlineExceeded, TaskyardError } from "./errors.js";

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 1_000;

/** Whether a retry may succeed: the server asks for one, is unavailable, or the connection broke. */
export function isTransient(error: TaskyardError): boolean {
  if (error.retryable || error instanceof ConsumerStalled) return true;
  // Errors that gRPC itself raises for a broken connection carry no reason; the servers always set one.
  const broken = [Code.INTERNAL, Code.UNKNOWN, Code.CANCELLED];
  return !error.reason && broken.includes(error.code);
}

/** The same for calls that are safe to repeat whatever became of them: a call that took too long may be sent again. */
export function isRepeatable(error: TaskyardError): boolean {
  return isTransient(error) || error instanceof DeadlineExceeded;
}

/** Waits longer with each failure in a row, for at most `limitMs` since the last success. */
export class RetryTimer {
  private delayMs = FIRST_DELAY_MS;
  private deadline: number;

  /** `retries` decides which errors are worth a retry. */
  constructor(
    private readonly limitMs: number,
    private readonly retries: (error: TaskyardError) => boolean = isTransient,
  ) {
    this.deadline = performance.now() + limitMs;
  }

  /** Restarts the limit after a success. */
  refresh(): void {
    this.delayMs = FIRST_DELAY_MS;
    this.deadline = performance.now() + this.limitMs;
  }

  /** Returns when the call should be retried; throws `error` if it is permanent or time is up. */
  async wait(error: unknown, signal?: AbortSignal): Promise<void> {
    if (!(error instanceof TaskyardError)) throw error;
    const delay = Math.max(error.retryAfterMs ?? 0, this.delayMs * (0.5 + Math.random() / 2));
    if (!this.retries(error) || performance.now() + delay > this.deadline) throw error;
    this.delayMs = Math.min(MAX_DELAY_MS, this.delayMs * 2);
    await sleep(delay, undefined, signal ? { signal } : {});
  }
}

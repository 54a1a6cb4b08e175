/** Streams that outlive their connections: they resume where they broke, without gaps or repeats. */

import { create } from "@bufbuild/protobuf";

import { Code, Unavailable } from "./errors.js";
import { LogEntrySchema, LogLevel, LogSource, type LogEntry } from "./gen/taskyard/v1/log_pb.js";
import {
  TaskEventType,
  type TailTaskLogsResponse,
  type TaskEvent,
  type WatchTasksResponse,
} from "./gen/taskyard/v1/task_service_pb.js";
import { RetryTimer } from "./retryTimer.js";

/** The server ends a stream after at most 66 minutes and announces that. */
export const STREAM_MS = 70 * 60_000;
/** Longest silence of a watch; the server sends a bookmark every 15 s. */
export const SILENCE_MS = 60_000;
/** Tasks whose newest version is kept to detect repeats. */
const MAX_TRACKED_TASKS = 100_000;

interface Response {
  readonly resumeToken: string;
  readonly closing: boolean;
}

export interface ResumeOptions {
  readonly token: string;
  /** Whether the end of a stream is never the end of the work. */
  readonly endless: boolean;
  readonly silenceMs: number;
  readonly outageMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Every response of the streams that `connect` opens, over as many connections as needed.
 *
 * Ends when the server ends a stream without announcing it, unless `endless`. Throws if the first connection
 * fails, if an error is permanent, or after an outage of `outageMs`.
 */
export async function* responses<R extends Response>(
  connect: (token: string, signal: AbortSignal) => AsyncGenerator<R, void, undefined>,
  options: ResumeOptions,
): AsyncGenerator<R, void, undefined> {
  let { token } = options;
  let timer: RetryTimer | undefined;
  for (;;) {
    const ended = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
    const stream = connect(token, signal);
    let closing = options.endless;
    let lost: unknown;
    try {
      for (;;) {
        const next = await withinSilence(stream.next(), options.silenceMs);
        if (next.done) break;
        timer ??= new RetryTimer(options.outageMs);
        timer.refresh();
        yield next.value;
        token = next.value.resumeToken || token;
        closing = options.endless || next.value.closing;
      }
      if (!closing) return;
      lost = new Unavailable("the server ended the stream", { code: Code.UNAVAILABLE });
    } catch (error) {
      lost = error;
    } finally {
      ended.abort();
    }
    options.signal?.throwIfAborted();
    await (timer ?? new RetryTimer(0)).wait(lost, options.signal);
  }
}

async function withinSilence<T>(next: Promise<T>, silenceMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Unavailable(`the server sent nothing for ${silenceMs / 1000} s`, { code: Code.UNAVAILABLE }));
    }, silenceMs);
  });
  try {
    return await Promise.race([next, silence]);
  } finally {
    clearTimeout(timer);
    next.catch(() => undefined);
  }
}

/** A change of a task, and the token after which a later watch continues behind it. */
export interface WatchedEvent extends TaskEvent {
  readonly resumeToken: string;
}

/** The events of a watch, each change once; `token` is where it began. */
export async function* watchEvents(
  source: AsyncIterable<WatchTasksResponse>,
  token: string,
): AsyncGenerator<WatchedEvent, void, undefined> {
  const seen = new Map<string, bigint>();
  for await (const response of source) {
    const fresh = response.events.filter((event) => isNew(seen, event));
    for (const [index, event] of fresh.entries()) {
      // Until the last event of a response is processed, only the token before it is safe.
      if (index === fresh.length - 1) token = response.resumeToken || token;
      yield { ...event, resumeToken: token };
    }
    token = response.resumeToken || token;
  }
}

const DELETED = 1n << 63n;

function isNew(seen: Map<string, bigint>, event: TaskEvent): boolean {
  // A task that was deleted and created again has the old name and a new uid.
  const key = event.task?.metadata?.uid || event.task?.name || "";
  const version = event.type === TaskEventType.DELETED ? DELETED : event.resourceVersion;
  const last = seen.get(key) ?? -1n;
  seen.delete(key);
  seen.set(key, version > last ? version : last);
  if (seen.size > MAX_TRACKED_TASKS) seen.delete(seen.keys().next().value ?? "");
  return version > last;
}

/** The entries of a log, each once, with a warning where the runner had to drop some. */
export async function* logEntries(source: AsyncIterable<TailTaskLogsResponse>): AsyncGenerator<LogEntry, void, undefined> {
  const last = new Map<bigint, bigint>();
  for await (const response of source) {
    if (response.droppedCount > 0n) yield dropped(response);
    for (const entry of response.entries) {
      if (entry.sequence <= (last.get(entry.generation) ?? 0n)) continue;
      last.set(entry.generation, entry.sequence);
      yield entry;
    }
    if (response.complete) return;
  }
}

function dropped(response: TailTaskLogsResponse): LogEntry {
  return create(LogEntrySchema, {
    generation: response.entries[0]?.generation ?? 0n,
    level: LogLevel.WARNING,
    source: LogSource.RUNNER,
    message: `${String(response.droppedCount)} lines are missing here; they were written too fast to be sent`,
  });
}

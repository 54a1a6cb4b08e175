/** Creates tasks in batches whose items succeed or fail on their own, and repeats those that may still succeed. */

import { toBinary } from "@bufbuild/protobuf";

import { BatchTooLarge, TaskyardError } from "./errors.js";
import { CreateTaskRequestSchema, type CreateTaskRequest } from "./gen/taskyard/v1/task_service_pb.js";
import type { NewTask } from "./newTask.js";
import { RetryTimer } from "./retryTimer.js";

const MAX_ITEMS = 1000;
// Below the server's message limit, with room for one large item.
const MAX_BYTES = 3 * 1024 * 1024;

type Send<T> = (requests: CreateTaskRequest[]) => Promise<(T | TaskyardError)[]>;

/** The requests for these tasks in batches of a size that the server accepts, read only as they are taken. */
export async function* batches(
  tasks: Iterable<NewTask> | AsyncIterable<NewTask>,
  prepare: (task: NewTask) => CreateTaskRequest,
): AsyncGenerator<CreateTaskRequest[], void, undefined> {
  let batch: CreateTaskRequest[] = [];
  let size = 0;
  for await (const task of tasks) {
    const request = prepare(task);
    const bytes = toBinary(CreateTaskRequestSchema, request).length;
    if (batch.length >= MAX_ITEMS || (batch.length > 0 && size + bytes > MAX_BYTES)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(request);
    size += bytes;
  }
  if (batch.length > 0) yield batch;
}

/** One result per request, in order; each carries a request id, so that sending it again is safe. */
export async function createBatch<T>(
  requests: readonly CreateTaskRequest[],
  send: Send<T>,
  outageMs: number,
  signal?: AbortSignal,
): Promise<(T | TaskyardError)[]> {
  const results: (T | TaskyardError)[] = [];
  const timer = new RetryTimer(outageMs);
  let pending = requests.map((_, index) => index);
  for (;;) {
    const received = await sendOnce(pending.map((index) => requests[index] as CreateTaskRequest), send);
    for (const [n, index] of pending.entries()) results[index] = received[n] as T | TaskyardError;
    const refused = pending.filter((index) => {
      const result = results[index];
      return result instanceof TaskyardError && result.retryable;
    });
    if (refused.length === 0) return results;
    if (refused.length < pending.length) timer.refresh();
    pending = refused;
    const errors = refused.map((index) => results[index] as TaskyardError);
    const slowest = errors.reduce((a, b) => ((b.retryAfterMs ?? 0) > (a.retryAfterMs ?? 0) ? b : a));
    try {
      await timer.wait(slowest, signal);
    } catch (error) {
      if (error !== slowest) throw error;
      return results;
    }
  }
}

async function sendOnce<T>(requests: CreateTaskRequest[], send: Send<T>): Promise<(T | TaskyardError)[]> {
  try {
    return await send(requests);
  } catch (error) {
    if (!(error instanceof TaskyardError)) throw error;
    if (!(error instanceof BatchTooLarge) || requests.length === 1) return requests.map(() => error);
    const half = Math.ceil(requests.length / 2);
    return [...(await sendOnce(requests.slice(0, half), send)), ...(await sendOnce(requests.slice(half), send))];
  }
}

/** Client and worker for Taskyard; the messages of the contract are in "taskyard/v1". */

export { isLocal, type CallOptions, type Server } from "./channel.js";
export {
  Client,
  isTerminal,
  phaseOf,
  type ClientOptions,
  type CreatedTask,
  type ListOptions,
  type LogOptions,
  type TaskRef,
  type View,
  type WatchOptions,
} from "./client.js";
export { findContext, type Context, type ContextOptions } from "./context.js";
export * as errors from "./errors.js";
export { command, container, external, fn, script, typed, type After, type NewTask, type Retry, type TaskOptions } from "./newTask.js";
export { fromPayload, toPayload } from "./payload.js";
export { Schedules, type ScheduleListOptions, type ScheduleTimes } from "./schedules.js";
export type { WatchedEvent } from "./stream.js";
export { withTraceparent } from "./tracing.js";
export { JobStopped, PermanentError, TransientError, type Handler, type Job, type StopCause } from "./job.js";
export { Worker, type WorkerOptions } from "./worker.js";

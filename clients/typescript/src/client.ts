/** The client: creates, reads, watches and controls tasks. */

import {
  clone,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";

import { Channels, type CallOptions, type Server } from "./channel.js";
import { findContext, type Context, type ContextOptions } from "./context.js";
import { WaitTimeout, type TaskyardError } from "./errors.js";
import type { AuditEvent } from "./gen/taskyard/v1/audit_pb.js";
import type { Checkpoint } from "./gen/taskyard/v1/checkpoint_pb.js";
import { BatchMode } from "./gen/taskyard/v1/common_pb.js";
import { ExplainService, type ExplainTaskRequestSchema, type ExplainTaskResponse } from "./gen/taskyard/v1/explain_service_pb.js";
import { LogLevel, type LogEntry } from "./gen/taskyard/v1/log_pb.js";
import { TaskPhase, type Task, type TaskRun } from "./gen/taskyard/v1/task_pb.js";
import {
  CreateTaskRequestSchema,
  TaskService,
  TaskView,
  type BatchCreateTasksResult,
  type CreateOutcome,
  type CreateTaskRequest,
  type TailTaskLogsResponse,
  type UpdateTaskRequestSchema,
  type WatchTasksResponse,
} from "./gen/taskyard/v1/task_service_pb.js";
import { newRequestId } from "./names.js";
import type { NewTask } from "./newTask.js";
import { toPayload } from "./payload.js";
import { pages, present } from "./responses.js";
import { RetryTimer } from "./retryTimer.js";
import { Schedules } from "./schedules.js";
import { fromStatus } from "./status.js";
import { logEntries, responses, SILENCE_MS, STREAM_MS, watchEvents, type WatchedEvent } from "./stream.js";
import { batches, createBatch } from "./submit.js";
import { Tenant, type TaskRef } from "./tenant.js";

export type { TaskRef };
/** How much of a task is fetched: its identity and phase, all but its documents, or everything. */
export type View = "name" | "basic" | "full";
/** A created task, and whether the create made it. */
export type CreatedTask = Task & { readonly outcome: CreateOutcome };

export interface ClientOptions extends ContextOptions {
  /** Replaces the timeout per method of service_config.json. */
  timeoutMs?: number;
  /** How long watch, logs, wait and createMany retry while the server cannot be reached; 5 minutes by default. */
  outageTimeoutMs?: number;
}

export interface ListOptions extends CallOptions {
  /** An expression such as 'metadata.labels.team = "a"'. */
  filter?: string;
  orderBy?: string;
  /** At most this many tasks. */
  limit?: number;
  pageSize?: number;
  view?: View;
}

export interface WatchOptions {
  /** Only these tasks; all that match `filter` otherwise. */
  tasks?: readonly TaskRef[];
  filter?: string;
  /** Continue after this token; from now on if it is empty. */
  resumeToken?: string;
  /** First the current tasks, then their changes. */
  snapshot?: boolean;
  /** End when all `tasks` have ended. */
  untilTerminal?: boolean;
  view?: View;
  signal?: AbortSignal;
}

export interface LogOptions {
  /** Until the task has ended. */
  follow?: boolean;
  /** Only the last lines. */
  tail?: number;
  /** Only this run. */
  generation?: bigint;
  minLevel?: LogLevel;
  signal?: AbortSignal;
}

const PAGE_SIZE = 1000;
// The longest wait of one WaitTask call, and the time for its response beyond that.
const WAIT_MS = 60_000;
const RESPONSE_MS = 15_000;

const VIEWS = { name: TaskView.NAME, basic: TaskView.BASIC, full: TaskView.FULL };

/** Whether a task has ended. */
export function isTerminal(task: Task): boolean {
  return (task.status?.phase ?? TaskPhase.UNSPECIFIED) >= TaskPhase.SUCCEEDED;
}

/** The phase of a task as a word: "SUCCEEDED". */
export function phaseOf(task: Task): string {
  return TaskPhase[task.status?.phase ?? TaskPhase.UNSPECIFIED];
}

/**
 * A connection to Taskyard; options that are not given come from TASKYARD_ADDRESS, TASKYARD_KEY and so on, then
 * from .taskyard/context.toml in this folder or one above, then from ~/.config/taskyard/config.toml.
 */
export class Client {
  readonly context: Context;
  /** The schedules of the tenant: tasks that are created by time. */
  readonly schedules: Schedules;
  private readonly channels: Channels;
  private readonly outageMs: number;
  private readonly tenant: Tenant;

  constructor(options: ClientOptions = {}) {
    this.context = findContext(options);
    this.channels = new Channels(this.context, options.timeoutMs);
    this.outageMs = options.outageTimeoutMs ?? 300_000;
    this.tenant = new Tenant(this.context, this.channels);
    this.schedules = new Schedules(this.tenant, this.channels);
  }

  /** Closes the connections and cancels the calls in flight. */
  close(): void {
    this.channels.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Any unary method of any service, with the key, deadline, retries and errors of this client. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions & { server?: Server } = {},
  ): Promise<MessageShape<O>> {
    return this.channels.unary(options.server ?? "taskdb", method, request, options);
  }

  /** The tenant of the context; where it names none, that of the key. */
  tenantId(options: CallOptions = {}): Promise<string> {
    return this.tenant.id(options);
  }

  // Creating

  /** Creates a task; when this resolves it is stored durably. A retry inside creates no second task. */
  async create(task: NewTask, options: CallOptions = {}): Promise<CreatedTask> {
    const request = { ...this.prepared(task), parent: await this.tenant.parent(options) };
    const response = await this.call(TaskService.method.createTask, request, options);
    return Object.assign(present(response.task), { outcome: response.outcome });
  }

  /** Validates a create without storing it; returns the task with its defaults filled in. */
  async check(task: NewTask, options: CallOptions = {}): Promise<Task> {
    const request = { ...this.prepared(task), parent: await this.tenant.parent(options), validateOnly: true };
    return present((await this.call(TaskService.method.createTask, request, options)).task);
  }

  /** Creates any number of tasks; for each, in order, the created task or its error. */
  async *createMany(
    tasks: Iterable<NewTask> | AsyncIterable<NewTask>,
    options: CallOptions = {},
  ): AsyncGenerator<CreatedTask | TaskyardError, void, undefined> {
    const send = async (requests: CreateTaskRequest[]) => {
      const parent = await this.tenant.parent(options);
      const request = { parent, requests, mode: BatchMode.PER_ITEM, view: TaskView.NAME };
      return (await this.call(TaskService.method.batchCreateTasks, request, options)).results.map(batchResult);
    };
    for await (const batch of batches(tasks, (task) => this.prepared(task))) {
      yield* await createBatch(batch, send, this.outageMs, options.signal);
    }
  }

  private prepared(task: NewTask): CreateTaskRequest {
    const request = clone(CreateTaskRequestSchema, task.request);
    request.requestId ||= newRequestId();
    return request;
  }

  // Reading

  /** A task. */
  async get(task: TaskRef, options: CallOptions & { view?: View } = {}): Promise<Task> {
    const request = { name: await this.tenant.task(task, options), view: VIEWS[options.view ?? "full"] };
    return present((await this.call(TaskService.method.getTask, request, options)).task);
  }

  /** Tasks, newest first, fetched page by page as they are read. */
  async *list(options: ListOptions = {}): AsyncGenerator<Task, void, undefined> {
    let left = options.limit ?? Infinity;
    const size = options.pageSize ?? PAGE_SIZE;
    const parent = await this.tenant.parent(options);
    const fetch = (pageToken: string) =>
      this.call(
        TaskService.method.listTasks,
        {
          parent,
          filter: options.filter ?? "",
          orderBy: options.orderBy ?? "",
          view: VIEWS[options.view ?? "basic"],
          pageSize: Math.min(size, left),
          pageToken,
        },
        options,
      );
    for await (const page of pages(fetch)) {
      for (const task of page.tasks) {
        if (left-- <= 0) return;
        yield task;
      }
      if (left <= 0) return;
    }
  }

  /** The runs of a task, newest first. */
  async *runs(task: TaskRef, options: CallOptions = {}): AsyncGenerator<TaskRun, void, undefined> {
    const parent = await this.tenant.task(task, options);
    const fetch = (pageToken: string) => this.call(TaskService.method.listTaskRuns, { parent, pageToken }, options);
    for await (const page of pages(fetch)) yield* page.runs;
  }

  /** The checkpoints of a task, newest first. */
  async *checkpoints(task: TaskRef, options: CallOptions = {}): AsyncGenerator<Checkpoint, void, undefined> {
    const parent = await this.tenant.task(task, options);
    const fetch = (pageToken: string) => this.call(TaskService.method.listCheckpoints, { parent, pageToken }, options);
    for await (const page of pages(fetch)) yield* page.checkpoints;
  }

  /** Who did what, newest first. */
  async *audit(filter = "", options: CallOptions = {}): AsyncGenerator<AuditEvent, void, undefined> {
    const parent = await this.tenant.parent(options);
    const fetch = (pageToken: string) =>
      this.call(TaskService.method.listAuditEvents, { parent, filter, pageToken }, options);
    for await (const page of pages(fetch)) yield* page.auditEvents;
  }

  /** The content of a checkpoint, by default of the newest one. */
  async readCheckpoint(task: TaskRef, sequence?: bigint, options: CallOptions = {}): Promise<Uint8Array> {
    const name = `${await this.tenant.task(task, options)}/checkpoints/${sequence === undefined ? "latest" : String(sequence)}`;
    const parts: Uint8Array[] = [];
    const stream = this.channels.serverStream(
      "taskdb",
      TaskService.method.readCheckpoint,
      { name },
      { timeoutMs: 120_000, ...options },
    );
    for await (const part of stream) parts.push(part.data);
    return Buffer.concat(parts);
  }

  /** Why a task does not run, or whether a new one would. */
  async explain(subject: TaskRef | NewTask, options: CallOptions = {}): Promise<ExplainTaskResponse> {
    const spec = typeof subject === "object" && "request" in subject ? subject.request.task?.spec : undefined;
    const request: MessageInitShape<typeof ExplainTaskRequestSchema> = {
      parent: await this.tenant.parent(options),
      subject: spec
        ? { case: "spec", value: spec }
        : { case: "name", value: await this.tenant.task(subject as TaskRef, options) },
    };
    return this.call(ExplainService.method.explainTask, request, { ...options, server: "scheduler" });
  }

  // Following

  /** The task once it has ended; throws WaitTimeout after `timeoutMs`. Retries over outages. */
  async wait(task: TaskRef, options: CallOptions & { view?: View } = {}): Promise<Task> {
    const ends = performance.now() + (options.timeoutMs ?? Infinity);
    const timer = new RetryTimer(this.outageMs);
    for (;;) {
      const left = Math.max(0, Math.min(WAIT_MS, ends - performance.now()));
      const call = { signal: options.signal, timeoutMs: left + RESPONSE_MS };
      try {
        const name = await this.tenant.task(task, { signal: options.signal });
        const request = { name, timeout: durationFromMs(Math.ceil(left)), view: VIEWS[options.view ?? "full"] };
        const response = await this.call(TaskService.method.waitTask, request, call);
        timer.refresh();
        if (response.satisfied) return present(response.task);
        if (performance.now() >= ends) {
          const phase = phaseOf(present(response.task));
          throw new WaitTimeout(`${name} is still ${phase} after ${options.timeoutMs ?? 0} ms`);
        }
      } catch (error) {
        options.signal?.throwIfAborted();
        await timer.wait(error, options.signal);
      }
    }
  }

  /**
   * Every change of these tasks, or of all that match the filter, once and in order, over broken connections and
   * restarts of the server. Throws OutOfRange if the history after the token is gone.
   */
  watch(options: WatchOptions = {}): AsyncGenerator<WatchedEvent, void, undefined> {
    const token = options.resumeToken ?? "";
    const source = responses((resumeToken, signal) => this.watchOnce(options, resumeToken, signal), {
      token,
      endless: !options.untilTerminal,
      silenceMs: SILENCE_MS,
      outageMs: this.outageMs,
      signal: options.signal,
    });
    return watchEvents(source, token);
  }

  private async *watchOnce(
    options: WatchOptions,
    resumeToken: string,
    signal: AbortSignal,
  ): AsyncGenerator<WatchTasksResponse, void, undefined> {
    const request = {
      parent: await this.tenant.parent({ signal }),
      names: await Promise.all((options.tasks ?? []).map((task) => this.tenant.task(task, { signal }))),
      filter: options.filter ?? "",
      untilTerminal: options.untilTerminal ?? false,
      view: VIEWS[options.view ?? "basic"],
      snapshot: (options.snapshot ?? false) && !resumeToken,
      resumeToken,
    };
    yield* this.channels.serverStream("taskdb", TaskService.method.watchTasks, request, { timeoutMs: STREAM_MS, signal });
  }

  /** The output of a task, with `follow` until it has ended; resumes without gaps or repeats. */
  logs(task: TaskRef, options: LogOptions = {}): AsyncGenerator<LogEntry, void, undefined> {
    const source = responses((resumeToken, signal) => this.logsOnce(task, options, resumeToken, signal), {
      token: "",
      endless: false,
      silenceMs: STREAM_MS,
      outageMs: this.outageMs,
      signal: options.signal,
    });
    return logEntries(source);
  }

  private async *logsOnce(
    task: TaskRef,
    options: LogOptions,
    resumeToken: string,
    signal: AbortSignal,
  ): AsyncGenerator<TailTaskLogsResponse, void, undefined> {
    const request = {
      parent: await this.tenant.task(task, { signal }),
      follow: options.follow ?? false,
      tailLines: options.tail ?? 0,
      generation: options.generation ?? 0n,
      minLevel: options.minLevel ?? LogLevel.UNSPECIFIED,
      resumeToken,
    };
    yield* this.channels.serverStream("taskdb", TaskService.method.tailTaskLogs, request, { timeoutMs: STREAM_MS, signal });
  }

  // Controlling

  /** Requests cancellation; no new attempt starts after this resolves. Repeating it is safe. */
  async cancel(task: TaskRef, options: CallOptions & { reason?: string; graceMs?: number } = {}): Promise<Task> {
    return present((await this.call(TaskService.method.cancelTask, await this.stop(task, options), options)).task);
  }

  /** Requests a pause; the workload may write a checkpoint before it stops. Repeating it is safe. */
  async pause(task: TaskRef, options: CallOptions & { reason?: string; graceMs?: number } = {}): Promise<Task> {
    return present((await this.call(TaskService.method.pauseTask, await this.stop(task, options), options)).task);
  }

  /** Resumes a paused task. Repeating it is safe. */
  async resume(task: TaskRef, options: CallOptions = {}): Promise<Task> {
    return present((await this.call(TaskService.method.resumeTask, { name: await this.tenant.task(task, options) }, options)).task);
  }

  /** Runs a task that ended without success again, by default from its latest checkpoint. */
  async retry(task: TaskRef, options: CallOptions & { fromScratch?: boolean } = {}): Promise<Task> {
    const request = {
      name: await this.tenant.task(task, options),
      discardCheckpoints: options.fromScratch ?? false,
      requestId: newRequestId(),
    };
    return present((await this.call(TaskService.method.retryTask, request, options)).task);
  }

  /** Deletes an ended task with its runs and logs; its audit trail is kept. */
  async delete(task: TaskRef, options: CallOptions & { missingOk?: boolean } = {}): Promise<void> {
    const request = { name: await this.tenant.task(task, options), allowMissing: options.missingOk ?? false };
    await this.call(TaskService.method.deleteTask, request, options);
  }

  /** Changes the fields that `paths` name, such as "spec.priority"; throws if the task changed since it was read. */
  async update(task: Task, paths: readonly string[], options: CallOptions = {}): Promise<Task> {
    const request: MessageInitShape<typeof UpdateTaskRequestSchema> = {
      task,
      updateMask: { paths: [...paths] },
      requestId: newRequestId(),
    };
    return present((await this.call(TaskService.method.updateTask, request, options)).task);
  }

  /** Reports the status of an external task, as its owner. */
  async report(
    task: TaskRef,
    phase: "running" | "succeeded" | "failed" | undefined,
    options: CallOptions & { percent?: number; message?: string; output?: unknown } = {},
  ): Promise<Task> {
    const message = options.message ?? "";
    const output = toPayload(options.output);
    const phases = { running: TaskPhase.RUNNING, succeeded: TaskPhase.SUCCEEDED, failed: TaskPhase.FAILED };
    const request = {
      name: await this.tenant.task(task, options),
      requestId: newRequestId(),
      phase: phase ? phases[phase] : TaskPhase.UNSPECIFIED,
      ...(options.percent || (message && phase !== "failed")
        ? { progress: { percent: options.percent ?? 0, message } }
        : {}),
      ...(phase === "failed" ? { error: { message } } : {}),
      ...(output ? { result: { output } } : {}),
    };
    return present((await this.call(TaskService.method.reportTaskStatus, request, options)).task);
  }

  private async stop(task: TaskRef, options: CallOptions & { reason?: string; graceMs?: number }) {
    return {
      name: await this.tenant.task(task, options),
      reason: options.reason ?? "",
      ...(options.graceMs === undefined ? {} : { gracePeriod: durationFromMs(options.graceMs) }),
    };
  }
}

function batchResult(item: BatchCreateTasksResult): CreatedTask | TaskyardError {
  if (item.result.case === "created") {
    return Object.assign(present(item.result.value.task), { outcome: item.result.value.outcome });
  }
  return fromStatus(present(item.result.value));
}

/** One claimed task in a worker: what its handler sees of it, and how its run ends. */

import { createHash } from "node:crypto";

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs, timestampNow, type Duration } from "@bufbuild/protobuf/wkt";

import type { Channels } from "./channel.js";
import { PhaseConflict } from "./errors.js";
import type { WriteWorkCheckpointRequestSchema } from "./gen/taskyard/v1/work_service_pb.js";
import { ErrorClass } from "./gen/taskyard/v1/common_pb.js";
import { LeaseAction, ReleaseReason, type Assignment, type LeaseRef } from "./gen/taskyard/v1/lease_pb.js";
import { LogEntrySchema, LogLevel, LogSource } from "./gen/taskyard/v1/log_pb.js";
import { WorkService } from "./gen/taskyard/v1/work_service_pb.js";
import type { Outbox, Report } from "./outbox.js";
import { fromPayload, toPayload } from "./payload.js";
import { withTraceparent } from "./tracing.js";

/** Fails the task without another attempt. */
export class PermanentError extends Error {
  override name = "PermanentError";

  /** `code` is in UPPER_SNAKE_CASE, for programs. */
  constructor(
    message: string,
    readonly code: string = "HANDLER_FAILED",
  ) {
    super(message);
  }
}

/** Fails the attempt; another follows under the retry policy, not before `retryAfterMs`. */
export class TransientError extends Error {
  override name = "TransientError";

  constructor(
    message: string,
    readonly code: string = "HANDLER_FAILED",
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/** Why a handler's signal was aborted. */
export type StopCause = "cancelled" | "paused" | "lease_lost" | "worker_stopping" | TimeoutCode;
type TimeoutCode = "ATTEMPT_TIMEOUT" | "SILENCE_TIMEOUT" | "TOTAL_TIMEOUT";

/** The reason of a handler's signal. */
export class JobStopped extends Error {
  override name = "JobStopped";

  /** `detail` is the reason that the caller of a cancel or pause gave. */
  constructor(
    readonly stopCause: StopCause,
    readonly detail = "",
  ) {
    super(detail ? `${stopCause}: ${detail}` : stopCause);
  }
}

/** Executes a task; what it returns is the output. It should end soon after `job.signal` is aborted. */
export type Handler = (job: Job) => unknown;

const CHUNK_BYTES = 256 * 1024;
const MAX_MESSAGE = 16 * 1024;
const DEFAULT_GRACE_MS = 30_000;

/** A claimed task; made by a Worker, used by a handler. */
export class Job {
  private readonly controller = new AbortController();
  private readonly timers = new Set<NodeJS.Timeout>();
  private leaseTimer: NodeJS.Timeout | undefined;
  private silenceTimer: NodeJS.Timeout | undefined;
  private logSequence = 0n;
  private readonly pendingLogs = new Set<Promise<unknown>>();
  private checkpointSequence: bigint;
  /** The proof that this worker holds the task. */
  readonly lease: LeaseRef;

  constructor(
    readonly assignment: Assignment,
    private readonly channels: Channels,
    private readonly outbox: Outbox,
    private readonly workerId: string,
    private readonly leaseMs: number,
  ) {
    if (!assignment.lease) throw new TypeError("the assignment has no lease");
    this.lease = assignment.lease;
    this.checkpointSequence = assignment.checkpoint?.sequence ?? 0n;
  }

  /** Aborted when the task is cancelled or paused, times out, loses its lease, or the worker stops. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Full name of the task. */
  get task(): string {
    return this.lease.task;
  }

  /** Attempt number, from 1. */
  get attempt(): number {
    return this.assignment.attempt;
  }

  /** The document of a JSON payload, the bytes of another; undefined if there is none. */
  get payload(): unknown {
    return fromPayload(this.assignment.spec?.payload);
  }

  /**
   * The result of the prerequisite with this alias; undefined if it has none. Throws if there is no such alias, or if the
   * result was too large to come with the claim: Client.get returns it.
   */
  input(alias: string): unknown {
    const found = this.assignment.inputs.find((input) => input.alias === alias);
    if (!found) throw new RangeError(`no prerequisite of ${this.task} has the alias '${alias}'`);
    if (found.omitted) {
      throw new RangeError(`the result of ${found.task} (alias '${alias}') is too large for the claim; get the task`);
    }
    return fromPayload(found.result?.output);
  }

  /** The configuration of the task type. */
  get config(): unknown {
    return fromPayload(this.assignment.config);
  }

  get labels(): Readonly<Record<string, string>> {
    return this.assignment.labels;
  }

  /** The fencing token "{generation}.{lease_id}", for systems that guard side effects with TaskService.CheckFence. */
  get fence(): string {
    return `${String(this.lease.generation)}.${String(this.lease.leaseId)}`;
  }

  /** Whether this run still holds the task; renews its lease. */
  async checkFence(): Promise<boolean> {
    const sent = performance.now();
    const response = await this.channels.unary("scheduler", WorkService.method.renewWork, {
      workerId: this.workerId,
      leases: [this.lease],
      leaseDuration: durationFromMs(this.leaseMs),
    });
    for (const verdict of response.verdicts) this.obey(verdict.action, verdict.reason);
    const held = !response.verdicts.some((verdict) => verdict.action === LeaseAction.ABORT);
    if (held) this.renewed(sent, response.leaseTtl);
    return held;
  }

  /** Reports how far the work has come; a handler does not wait for it. */
  progress(percent: number, message = ""): void {
    this.sign();
    const value = { percent, message, observeTime: timestampNow() };
    void this.outbox.report(this.lease, { case: "progress", value });
  }

  /** Writes a line to the task's log. */
  log(message: string, level: LogLevel = LogLevel.INFO): void {
    this.sign();
    const entry = create(LogEntrySchema, {
      sequence: ++this.logSequence,
      time: timestampNow(),
      level,
      message: message.slice(0, MAX_MESSAGE),
      source: LogSource.WORKLOAD,
    });
    const stored = this.outbox.log(this.lease, entry).finally(() => this.pendingLogs.delete(stored));
    this.pendingLogs.add(stored);
  }

  /** Stores state from which a later attempt continues; resolves once it is stored. */
  async saveCheckpoint(data: Uint8Array, options: { contentType?: string; percent?: number } = {}): Promise<void> {
    this.sign();
    const { task, generation, leaseId } = this.lease;
    const header = {
      task,
      generation,
      leaseId,
      sequence: this.checkpointSequence + 1n,
      sizeBytes: BigInt(data.length),
      sha256: createHash("sha256").update(data).digest(),
      contentType: options.contentType ?? "",
      progressPercent: options.percent ?? 0,
    };
    const requests: MessageInitShape<typeof WriteWorkCheckpointRequestSchema>[] = [];
    for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) {
      const end = Math.min(data.length, offset + CHUNK_BYTES);
      const first = offset === 0;
      requests.push({
        ...(first ? { workerId: this.workerId } : {}),
        chunk: {
          ...(first ? { header } : {}),
          offset: BigInt(offset),
          data: data.subarray(offset, end),
          last: end === data.length,
        },
      });
    }
    await this.channels.clientStream("scheduler", WorkService.method.writeWorkCheckpoint, requests, {
      timeoutMs: 120_000,
    });
    this.checkpointSequence = header.sequence;
  }

  /** The newest checkpoint of the task; undefined if there is none. */
  async loadCheckpoint(): Promise<Uint8Array | undefined> {
    if (!this.assignment.checkpoint) return undefined;
    const parts: Uint8Array[] = [];
    const request = { workerId: this.workerId, lease: this.lease };
    const stream = this.channels.serverStream("scheduler", WorkService.method.readWorkCheckpoint, request, {
      timeoutMs: 120_000,
    });
    for await (const part of stream) parts.push(part.data);
    return Buffer.concat(parts);
  }

  // What the worker does with it

  /** Executes the handler and reports how it ended; resolves once the outcome is decided. `claimed` is when it was claimed. */
  async run(handler: Handler, claimed: number): Promise<void> {
    const started = this.outbox.report(this.lease, {
      case: "started",
      value: { checkpointSequence: this.checkpointSequence },
    });
    void started.then((error) => {
      // A cancel that was requested before the start is confirmed; everything else means that the lease is gone.
      if (error) this.stop(error instanceof PhaseConflict ? "cancelled" : "lease_lost", error.message);
    });
    this.renewed(claimed, this.assignment.leaseTtl);
    const spec = this.assignment.spec;
    this.limit("ATTEMPT_TIMEOUT", spec?.attemptTimeout);
    this.limit("TOTAL_TIMEOUT", this.assignment.totalTimeout);
    this.sign();
    const outcome = await this.outcome(handler);
    for (const timer of [...this.timers, this.leaseTimer, this.silenceTimer]) clearTimeout(timer);
    await Promise.allSettled(this.pendingLogs);
    if (outcome) await this.outbox.report(this.lease, outcome, { logSequence: this.logSequence });
  }

  private async outcome(handler: Handler): Promise<Report | undefined> {
    const work = withTraceparent(this.assignment.traceparent, () => Promise.resolve(this).then(handler));
    const grace = durationOr(this.assignment.spec?.stopGracePeriod, DEFAULT_GRACE_MS);
    try {
      const output = await Promise.race([work, this.stoppedFor(grace)]);
      const payload = toPayload(output);
      return { case: "succeeded", value: { result: payload ? { output: payload } : {} } };
    } catch (error) {
      const cause = this.signal.reason instanceof JobStopped ? this.signal.reason : undefined;
      return cause ? stoppedOutcome(cause) : failedOutcome(error);
    }
  }

  /** Rejects once the signal has been aborted for this long: a handler that ignores it does not delay the report. */
  private stoppedFor(graceMs: number): Promise<never> {
    return new Promise((_, reject) => {
      this.signal.addEventListener("abort", () => {
        this.timers.add(setTimeout(() => { reject(this.signal.reason as Error); }, graceMs));
      });
    });
  }

  /** Aborts the handler's signal, once. */
  stop(cause: StopCause, detail = ""): void {
    if (!this.signal.aborted) this.controller.abort(new JobStopped(cause, detail));
  }

  /** Carries out what the server answered to a renewal. */
  obey(action: LeaseAction, reason: string): void {
    if (action === LeaseAction.CANCEL) this.stop("cancelled", reason);
    if (action === LeaseAction.PAUSE) this.stop("paused", reason);
    if (action === LeaseAction.ABORT) this.stop("lease_lost", reason);
  }

  /** Notes a lease: a duration on this clock from the moment the request was sent. */
  renewed(sent: number, ttl: Duration | undefined): void {
    clearTimeout(this.leaseTimer);
    const left = sent + durationOr(ttl, this.leaseMs) - performance.now();
    this.leaseTimer = setTimeout(() => { this.stop("lease_lost", "the lease was not renewed in time"); }, left);
  }

  private limit(code: TimeoutCode, timeout: Duration | undefined): void {
    if (timeout) this.timers.add(setTimeout(() => { this.stop(code); }, Math.min(durationMs(timeout), 0x7fffffff)));
  }

  /** A sign of the workload: restarts its silence timeout. */
  private sign(): void {
    const timeout = this.assignment.spec?.silenceTimeout;
    if (!timeout) return;
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(() => { this.stop("SILENCE_TIMEOUT"); }, durationMs(timeout));
  }
}

function stoppedOutcome(cause: JobStopped): Report | undefined {
  switch (cause.stopCause) {
    case "lease_lost":
      return undefined;
    case "cancelled":
      return { case: "cancelled", value: {} };
    case "paused":
      return { case: "released", value: { reason: ReleaseReason.PAUSED } };
    case "worker_stopping":
      return { case: "released", value: { reason: ReleaseReason.DRAINED } };
    default:
      return { case: "timedOut", value: { code: cause.stopCause } };
  }
}

function failedOutcome(error: unknown): Report {
  const known = error instanceof PermanentError || error instanceof TransientError;
  const message = error instanceof Error ? error.message : String(error);
  const retryAfterMs = error instanceof TransientError ? error.retryAfterMs : undefined;
  const value = {
    error: {
      errorClass: error instanceof PermanentError ? ErrorClass.PERMANENT : ErrorClass.TRANSIENT,
      code: known ? error.code : "HANDLER_FAILED",
      message: message.slice(0, MAX_MESSAGE),
    },
    ...(retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(retryAfterMs) }),
  };
  return { case: "failed", value };
}

function durationOr(duration: Duration | undefined, otherwiseMs: number): number {
  return duration ? durationMs(duration) : otherwiseMs;
}

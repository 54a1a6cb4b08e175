/** A worker: claims tasks of the types it has handlers for, keeps their leases, and stops gracefully. */

import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { durationFromMs } from "@bufbuild/protobuf/wkt";

import { Channels } from "./channel.js";
import { findContext, type ContextOptions } from "./context.js";
import { TaskyardError } from "./errors.js";
import { ReleaseReason, type Assignment, type LeaseRef } from "./gen/taskyard/v1/lease_pb.js";
import { ExecutionKind } from "./gen/taskyard/v1/runner_pb.js";
import { WorkService } from "./gen/taskyard/v1/work_service_pb.js";
import { Job, type Handler } from "./job.js";
import { newRequestId } from "./names.js";
import { Outbox } from "./outbox.js";
import { isRepeatable, RetryTimer } from "./retryTimer.js";

/** The key of a worker is a runner key: `taskyard keys create --kind runner --runner-id ID`. */
export interface WorkerOptions extends ContextOptions {
  /** Unique among runners and workers; the key must allow it. */
  id: string;
  /** Tasks executed at a time; 1 by default. */
  concurrency?: number;
  /** How long a task stays with a worker that is out of reach; 30 s by default, at least 5 s. */
  leaseMs?: number;
  /** Labels for placement. */
  labels?: Record<string, string>;
  /** How long handlers may finish their tasks after a stop was requested; 30 s by default. */
  stopGraceMs?: number;
  /** How long an outage of the servers may last before `run` throws; 5 minutes by default. */
  outageTimeoutMs?: number;
}

// A claim waits for work up to this long.
const POLL_MS = 20_000;
// Claims of one request must not be larger than the server returns at once.
const MAX_CLAIM = 1000;

/** Executes tasks by handlers in this process. */
export class Worker {
  private readonly handlers = new Map<string, Handler>();
  private readonly jobs = new Map<string, Job>();
  private readonly running = new Set<Promise<void>>();
  private readonly channels: Channels;
  private readonly outbox: Outbox;
  private readonly concurrency: number;
  private readonly leaseMs: number;
  private readonly outageMs: number;
  private readonly stopRequest = new AbortController();
  private stopGraceMs: number;
  private ended: Promise<void> = Promise.resolve();

  constructor(private readonly options: WorkerOptions) {
    // A worker calls the scheduler only.
    const scheduler = options.scheduler ?? process.env["TASKYARD_SCHEDULER"];
    const address = options.address ?? process.env["TASKYARD_ADDRESS"] ?? scheduler;
    this.channels = new Channels(findContext({ ...options, address }));
    this.concurrency = options.concurrency ?? 1;
    this.leaseMs = options.leaseMs ?? 30_000;
    this.outageMs = options.outageTimeoutMs ?? 300_000;
    this.stopGraceMs = options.stopGraceMs ?? 30_000;
    this.outbox = new Outbox(this.channels, options.id, this.outageMs);
  }

  /** Executes tasks of this type, and function tasks of this name, by `handler`. */
  handle(taskType: string, handler: Handler): this {
    this.handlers.set(taskType, handler);
    return this;
  }

  /** Works until `signal` is aborted or `stop` is called; then lets running tasks end and gives the rest back. */
  run(signal?: AbortSignal): Promise<void> {
    if (this.handlers.size === 0) throw new TypeError("the worker has no handlers; call handle() first");
    const stop = this.stopRequest.signal;
    this.ended = this.work(signal ? AbortSignal.any([signal, stop]) : stop);
    return this.ended;
  }

  /** Stops claiming; resolves once nothing runs any more, at the latest soon after `graceMs`. */
  async stop(graceMs: number = this.stopGraceMs): Promise<void> {
    this.stopGraceMs = graceMs;
    this.stopRequest.abort();
    await this.ended;
  }

  private async work(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const failed = new AbortController();
    const stopping = AbortSignal.any([signal, failed.signal]);
    const stopped = new Promise<void>((resolve) => {
      stopping.addEventListener("abort", () => { resolve(); });
    });
    const renewal = this.renewForever(ended.signal).catch((error: unknown) => { failed.abort(error); });
    try {
      while (!stopping.aborted) {
        const free = this.concurrency - this.running.size;
        if (free > 0) await this.claim(free, stopping);
        else await Promise.race([stopped, ...this.running]);
      }
      failed.signal.throwIfAborted();
      await this.finish();
    } finally {
      for (const job of this.jobs.values()) job.stop("worker_stopping");
      await Promise.all(this.running);
      ended.abort();
      await renewal;
      this.channels.close();
    }
  }

  /** Claims once, under one request id however often the call is repeated, so that a lost answer strands nothing. */
  private async claim(count: number, signal: AbortSignal): Promise<void> {
    const requestId = newRequestId();
    const maxTasks = Math.min(count, MAX_CLAIM);
    const timer = new RetryTimer(this.outageMs, isRepeatable);
    for (;;) {
      const sent = performance.now();
      try {
        const waitMs = signal.aborted ? 0 : POLL_MS;
        for (const assignment of await this.claimOnce(requestId, maxTasks, waitMs, signal.aborted ? undefined : signal)) {
          if (signal.aborted) await this.release(assignment);
          else this.start(assignment, sent);
        }
        return;
      } catch (error) {
        // The answer of an aborted call may be on its way: the repeat fetches it, and gives the tasks back.
        if (signal.aborted && !(error instanceof TaskyardError)) continue;
        if (signal.aborted) return;
        await timer.wait(error, signal).catch((failed: unknown) => {
          if (!signal.aborted) throw failed;
        });
      }
    }
  }

  private async claimOnce(
    requestId: string,
    maxTasks: number,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Assignment[]> {
    const types = [...this.handlers.keys()];
    const request = {
      workerId: this.options.id,
      requestId,
      registration: {
        // Function tasks need not have a type.
        taskTypes: ["*"],
        functions: types,
        executionKinds: [ExecutionKind.FUNCTION],
        capacity: this.concurrency,
        labels: this.options.labels ?? {},
        host: hostname(),
        version: "typescript",
      },
      maxTasks,
      leaseDuration: durationFromMs(this.leaseMs),
      wait: durationFromMs(waitMs),
    };
    return (await this.channels.unary("scheduler", WorkService.method.claimTasks, request, { signal })).assignments;
  }

  private start(assignment: Assignment, claimed: number): void {
    const job = new Job(assignment, this.channels, this.outbox, this.options.id, this.leaseMs);
    const name = nameOf(job.lease);
    // The answer to a repeated claim may hold what runs already.
    if (this.jobs.has(name)) return;
    const kind = assignment.spec?.execution?.kind;
    const called = (kind?.case === "function" ? kind.value.function : "") || (assignment.spec?.taskType ?? "");
    const handler = this.handlers.get(called);
    this.jobs.set(name, job);
    const work = handler ? job.run(handler, claimed) : this.release(assignment, ReleaseReason.UNSUPPORTED);
    const done = work.finally(() => {
      this.jobs.delete(name);
      this.running.delete(done);
    });
    this.running.add(done);
  }

  private async release(assignment: Assignment, reason = ReleaseReason.DRAINED): Promise<void> {
    if (!assignment.lease) return;
    await this.outbox.report(assignment.lease, { case: "released", value: { reason } });
  }

  /** Waits for running handlers, at most for the grace period. */
  private async finish(): Promise<void> {
    const over = new AbortController();
    const grace = sleep(this.stopGraceMs, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([Promise.all(this.running), grace]);
    over.abort();
  }

  /** The heartbeat: renews every lease at a third of its time, and obeys the verdicts. */
  private async renewForever(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.leaseMs / 3, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const jobs = [...this.jobs.values()];
      if (jobs.length === 0) continue;
      const sent = performance.now();
      try {
        const response = await this.channels.unary("scheduler", WorkService.method.renewWork, {
          workerId: this.options.id,
          leases: jobs.map((job) => job.lease),
          leaseDuration: durationFromMs(this.leaseMs),
        });
        const verdicts = new Map(response.verdicts.map((verdict) => [nameOf(verdict.lease), verdict]));
        for (const job of jobs) {
          const verdict = verdicts.get(nameOf(job.lease));
          job.renewed(sent, response.leaseTtl);
          if (verdict) job.obey(verdict.action, verdict.reason);
        }
      } catch (error) {
        // The next renewal repeats it; work that must not overlap stops by its own timer.
        if (!(error instanceof TaskyardError && isRepeatable(error))) throw error;
      }
    }
  }
}

function nameOf(lease: LeaseRef | undefined): string {
  return lease ? `${lease.task}/${String(lease.generation)}` : "";
}

/** What a worker sends about its runs: reports and log entries, in batches, repeated until the server decides. */

import { setTimeout as sleep } from "node:timers/promises";

import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";

import type { Channels } from "./channel.js";
import type { TaskyardError } from "./errors.js";
import {
  LogBatchSchema,
  RunReportSchema,
  type LeaseRef,
  type LogBatch,
  type ReportResult,
  type RunReport,
} from "./gen/taskyard/v1/lease_pb.js";
import type { LogEntry } from "./gen/taskyard/v1/log_pb.js";
import { WorkService } from "./gen/taskyard/v1/work_service_pb.js";
import { isRepeatable, RetryTimer } from "./retryTimer.js";
import { fromStatus } from "./status.js";

const MAX_ITEMS = 1000;
const MAX_BYTES = 3 * 1024 * 1024;
// Log entries wait this long for others, so that a chatty handler makes few calls.
const LOG_DELAY_MS = 100;

interface Waiting<T> {
  readonly item: T;
  readonly size: number;
  readonly resolve: (result: TaskyardError | undefined) => void;
}

/** A queue whose items are sent in order, many per call, one call at a time. */
class Batcher<T> {
  private readonly waiting: Waiting<T>[] = [];
  private sending = false;

  constructor(
    private readonly send: (items: T[]) => Promise<(TaskyardError | undefined)[]>,
    private readonly delayMs: number,
    private readonly outageMs: number,
  ) {}

  /** The error with which the server rejected the item; undefined once it is applied. */
  add(item: T, size: number): Promise<TaskyardError | undefined> {
    return new Promise((resolve) => {
      this.waiting.push({ item, size, resolve });
      if (!this.sending) {
        this.sending = true;
        void this.drain();
      }
    });
  }

  private async drain(): Promise<void> {
    // Also without a delay: what is added in this turn of the event loop shares a call.
    await sleep(this.delayMs);
    while (this.waiting.length > 0) {
      const batch = this.next();
      const results = await this.decided(batch.map((one) => one.item));
      for (const [index, one] of batch.entries()) one.resolve(results[index]);
    }
    this.sending = false;
  }

  private next(): Waiting<T>[] {
    let count = 0;
    for (let bytes = 0; count < Math.min(MAX_ITEMS, this.waiting.length); count++) {
      bytes += this.waiting[count]?.size ?? 0;
      if (count > 0 && bytes > MAX_BYTES) break;
    }
    return this.waiting.splice(0, count);
  }

  /** One result per item; items are sent again while their error is transient, for as long as an outage may last. */
  private async decided(items: T[]): Promise<(TaskyardError | undefined)[]> {
    const results: (TaskyardError | undefined)[] = [];
    const timer = new RetryTimer(this.outageMs, isRepeatable);
    let pending = items.map((_, index) => index);
    for (;;) {
      let lost: TaskyardError | undefined;
      try {
        const received = await this.send(pending.map((index) => items[index] as T));
        for (const [n, index] of pending.entries()) results[index] = received[n];
        timer.refresh();
      } catch (error) {
        lost = error as TaskyardError;
        for (const index of pending) results[index] = lost;
      }
      pending = pending.filter((index) => {
        const error = results[index];
        return error !== undefined && isRepeatable(error);
      });
      const [first] = pending;
      if (first === undefined) return results;
      try {
        await timer.wait(lost ?? results[first]);
      } catch {
        return results;
      }
    }
  }
}

/** What a report carries. */
export type Report = NonNullable<MessageInitShape<typeof RunReportSchema>["report"]>;

/** The reports and log entries of all runs of a worker. */
export class Outbox {
  private readonly reports: Batcher<RunReport>;
  private readonly logs: Batcher<LogBatch>;

  constructor(channels: Channels, workerId: string, outageMs: number) {
    this.reports = new Batcher(
      async (reports) => {
        const response = await channels.unary("scheduler", WorkService.method.reportWork, { workerId, reports });
        return response.results.map(reportError);
      },
      0,
      outageMs,
    );
    this.logs = new Batcher(
      async (batches) => {
        const response = await channels.unary("scheduler", WorkService.method.appendWorkLogs, { workerId, batches });
        return response.results.map((status) => (status.code ? fromStatus(status) : undefined));
      },
      LOG_DELAY_MS,
      outageMs,
    );
  }

  /** Resolves once the report is applied (undefined) or rejected (its error). */
  report(
    lease: LeaseRef,
    report: Report,
    more: Pick<MessageInitShape<typeof RunReportSchema>, "logSequence"> = {},
  ): Promise<TaskyardError | undefined> {
    const message = create(RunReportSchema, { lease, report, ...more });
    return this.reports.add(message, toBinary(RunReportSchema, message).length);
  }

  /** Resolves once the entry is stored or rejected. */
  log(lease: LeaseRef, entry: LogEntry): Promise<TaskyardError | undefined> {
    const batch = create(LogBatchSchema, { lease, entries: [entry] });
    return this.logs.add(batch, entry.message.length + 64);
  }
}

function reportError(result: ReportResult): TaskyardError | undefined {
  return result.error?.code ? fromStatus(result.error) : undefined;
}

/** The workers of the driver and the functions that they serve. */

import { EventEmitter, once } from "node:events";

import { JobStopped, PermanentError, TransientError, Worker, type Client, type Job } from "../src/index.js";
import type { Arguments } from "./driver.js";

class Running {
  readonly events: string[] = [];
  readonly signals = new EventEmitter();
  released = false;

  constructor(readonly worker: Worker) {}

  record(event: string): void {
    this.events.push(event);
    this.signals.emit("event");
  }
}

/** The workers by the names that the tables give them. */
export class Workers {
  private readonly all = new Map<string, Running>();

  async answer(op: string, given: Arguments, client: Client): Promise<object> {
    const name = given["worker"] as string;
    if (op === "worker_start") {
      this.all.set(name, start(given, client));
      return {};
    }
    const running = this.all.get(name);
    if (!running) throw new Error(`no such operation or worker: ${op} ${name}`);
    if (op === "worker_events") {
      while (running.events.length < (given["count"] as number)) await once(running.signals, "event");
      return { events: running.events };
    }
    if (op === "worker_release") {
      running.released = true;
      running.signals.emit("release");
      return {};
    }
    if (op !== "worker_stop") throw new Error(`no such operation: ${op}`);
    await running.worker.stop();
    return {};
  }
}

function start(given: Arguments, client: Client): Running {
  const lease = given["lease_seconds"] as number | undefined;
  const grace = given["grace"] as number | undefined;
  const worker = new Worker({
    ...client.context,
    id: given["worker_id"] as string,
    concurrency: (given["concurrency"] as number | undefined) ?? 1,
    ...(lease === undefined ? {} : { leaseMs: lease * 1000 }),
    ...(grace === undefined ? {} : { stopGraceMs: grace * 1000 }),
  });
  const running = new Running(worker);
  worker
    .handle("conf.echo", (job) => job.payload)
    .handle("conf.fail", (job) => fail(job, running))
    .handle("conf.block", (job) => block(job, running))
    .handle("conf.log", (job) => {
      const { lines } = job.payload as { lines: number };
      for (let n = 1; n <= lines; n++) job.log(`line ${n}`);
      return null;
    })
    .handle("conf.checkpoint", (job) => checkpoint(job, running))
    .handle("conf.input", input)
    .handle("conf.fence", async (job) => ({ token: job.fence, valid: await job.checkFence() }));
  worker.run().catch((error: unknown) => { console.error(error); });
  return running;
}

function fail(job: Job, running: Running): string {
  const given = job.payload as { code: string; message: string; permanent?: boolean; succeed_at?: number };
  if (job.attempt >= (given.succeed_at ?? Infinity)) return "recovered";
  running.record(`failing ${job.attempt}`);
  throw new (given.permanent ? PermanentError : TransientError)(given.message, given.code);
}

async function block(job: Job, running: Running): Promise<string> {
  running.record("started");
  job.progress(50, "halfway");
  const ended = new AbortController();
  const released = once(running.signals, "release", { signal: ended.signal });
  const stopped = once(job.signal, "abort", { signal: ended.signal });
  if (!running.released && !job.signal.aborted) await Promise.race([released, stopped]);
  for (const waiting of [released, stopped]) waiting.catch(() => undefined);
  ended.abort();
  if (!(job.signal.reason instanceof JobStopped)) {
    running.record("released");
    return "released";
  }
  const { stopCause, detail } = job.signal.reason;
  const words = { cancelled: `cancelled: ${detail}`, lease_lost: "lost", worker_stopping: "stopping" };
  running.record(words[stopCause as keyof typeof words]);
  throw job.signal.reason;
}

async function checkpoint(job: Job, running: Running): Promise<unknown> {
  const state = await job.loadCheckpoint();
  if (state) {
    const content = new TextDecoder().decode(state);
    running.record(`resumed ${content}`);
    return JSON.parse(content) as unknown;
  }
  await job.saveCheckpoint(new TextEncoder().encode('{"page":3}'), { contentType: "application/json" });
  running.record("saved");
  throw new TransientError("crashed after a checkpoint", "CRASH");
}

function input(job: Job): unknown {
  try {
    return job.input((job.payload as { alias: string }).alias);
  } catch (error) {
    throw new PermanentError((error as Error).message, "NO_INPUT");
  }
}

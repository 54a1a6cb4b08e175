/** The worker against a real scheduler; TEST_RUNNER_KEY is a runner key for ids that begin with "ts-". */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { Client, fn, fromPayload, JobStopped, PermanentError, phaseOf, Worker, type Handler } from "../src/index.js";

const key = process.env["TEST_RUNNER_KEY"] ?? "";
let count = 0;

/** Runs `body` while a worker of its own executes the function it is called with. */
async function withWorker(
  handler: Handler,
  body: (client: Client, name: string, stop: AbortController) => Promise<void>,
  options: { concurrency?: number; leaseMs?: number; stopGraceMs?: number } = {},
): Promise<void> {
  const name = `ts-${process.pid}-${++count}`;
  const stop = new AbortController();
  const client = new Client();
  const work = new Worker({ id: name, key, leaseMs: 5_000, ...options }).handle(name, handler).run(stop.signal);
  try {
    await Promise.race([body(client, name, stop), work]);
  } finally {
    stop.abort();
    await work;
    client.close();
  }
}

test("a handler's return value is the task's output, with its log and progress", { timeout: 60_000 }, async () => {
  await withWorker(
    async (job) => {
      job.log("half way");
      job.progress(50, "half");
      assert.equal(await job.checkFence(), true);
      return { doubled: (job.payload as { n: number }).n * 2, fence: job.fence };
    },
    async (client, name) => {
      const ended = await client.wait(await client.create(fn(name, { n: 21 }, { retry: 0 })));
      assert.equal(phaseOf(ended), "SUCCEEDED", ended.status?.error?.message);
      const output = fromPayload(ended.status?.result?.output) as { doubled: number; fence: string };
      assert.equal(output.doubled, 42);
      assert.match(output.fence, /^1\.\d+$/);
      assert.equal(ended.status?.progress?.percent, 50);
      const lines = [];
      for await (const line of client.logs(ended, { follow: true })) lines.push(line.message);
      assert.deepEqual(lines, ["half way"]);
    },
  );
});

test("an error is retried, a PermanentError is not", { timeout: 60_000 }, async () => {
  await withWorker(
    (job) => {
      if ((job.payload as { permanent: boolean }).permanent) throw new PermanentError("never", "NO_SUCH_FILE");
      if (job.attempt === 1) throw new Error("once");
      return job.attempt;
    },
    async (client, name) => {
      const retry = { maxRetries: 1, initialMs: 10 };
      const failed = await client.create(fn(name, { permanent: true }, { retry }));
      const retried = await client.create(fn(name, { permanent: false }, { retry }));
      const error = (await client.wait(failed)).status?.error;
      assert.deepEqual([error?.code, error?.message], ["NO_SUCH_FILE", "never"]);
      assert.equal(fromPayload((await client.wait(retried)).status?.result?.output), 2);
    },
  );
});

test("a checkpoint of one attempt is loaded by the next", { timeout: 60_000 }, async () => {
  await withWorker(
    async (job) => {
      const state = await job.loadCheckpoint();
      if (state) return Buffer.from(state).toString();
      await job.saveCheckpoint(Buffer.alloc(300_000, "a"));
      await job.saveCheckpoint(Buffer.from("step 2"));
      throw new Error("crash");
    },
    async (client, name) => {
      const ended = await client.wait(await client.create(fn(name, {}, { retry: { maxRetries: 1, initialMs: 10 } })));
      assert.equal(fromPayload(ended.status?.result?.output), "step 2");
    },
  );
});

test("a cancel reaches the handler through its signal", { timeout: 60_000 }, async () => {
  let running: () => void = () => undefined;
  const started = new Promise<void>((resolve) => (running = resolve));
  await withWorker(
    async (job) => {
      running();
      if (!job.signal.aborted) await once(job.signal, "abort");
      throw job.signal.reason;
    },
    async (client, name) => {
      const task = await client.create(fn(name));
      await started;
      await client.cancel(task, { reason: "enough" });
      assert.equal(phaseOf(await client.wait(task)), "CANCELLED");
    },
  );
});

test("an attempt that takes too long is TIMED_OUT", { timeout: 60_000 }, async () => {
  await withWorker(
    async (job) => {
      await once(job.signal, "abort");
      assert.equal((job.signal.reason as JobStopped).stopCause, "ATTEMPT_TIMEOUT");
      throw job.signal.reason;
    },
    async (client, name) => {
      const task = await client.create(fn(name, {}, { timeoutMs: 200 }));
      assert.equal(phaseOf(await client.wait(task)), "TIMED_OUT");
    },
  );
});

test("a lease is renewed for longer than it lasts", { timeout: 60_000 }, async () => {
  await withWorker(
    (job) => new Promise((resolve) => setTimeout(() => { resolve(job.signal.aborted); }, 8_000)),
    async (client, name) => {
      const ended = await client.wait(await client.create(fn(name, {}, { overlap: "forbid", retry: 0 })));
      assert.equal(fromPayload(ended.status?.result?.output), false);
      assert.equal(ended.status?.generation, 1n);
    },
  );
});

test("a stop lets short tasks end and gives long ones back", { timeout: 60_000 }, async () => {
  let running: () => void = () => undefined;
  const started = new Promise<void>((resolve) => (running = resolve));
  let runs = 0;
  const handler: Handler = async (job) => {
    if (++runs === 2) running();
    const long = (job.payload as { long: boolean }).long;
    if (!long) return new Promise((resolve) => setTimeout(() => { resolve("done"); }, 300));
    await once(job.signal, "abort");
    throw job.signal.reason;
  };
  await withWorker(
    handler,
    async (client, name, stop) => {
      const short = await client.create(fn(name, { long: false }));
      const long = await client.create(fn(name, { long: true }));
      await started;
      stop.abort();
      assert.equal(phaseOf(await client.wait(short)), "SUCCEEDED");
      for await (const event of client.watch({ tasks: [long], snapshot: true })) {
        if (event.status?.generation === 1n && ["REDISTRIBUTING", "PENDING"].includes(phaseOf(event.task ?? long))) break;
      }
      await client.cancel(long);
    },
    { concurrency: 2, stopGraceMs: 1_000 },
  );
});

test("fifty tasks share five handlers", { timeout: 60_000 }, async () => {
  let most = 0;
  let now = 0;
  await withWorker(
    async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 10));
      now--;
    },
    async (client, name) => {
      const made = [];
      for await (const one of client.createMany(Array.from({ length: 50 }, () => fn(name)))) made.push(one);
      for (const task of made) assert.equal(phaseOf(await client.wait(task as { name: string })), "SUCCEEDED");
      assert.ok(most > 1 && most <= 5, `${most} at a time`);
    },
    { concurrency: 5 },
  );
});

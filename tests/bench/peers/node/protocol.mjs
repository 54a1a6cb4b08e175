// What the programs of this folder share: modes, pace and the line of JSON that answers.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export const BATCH = 1000;
const IN_FLIGHT = 2;
const CALLERS = 50;
const PER_SECOND = 100;
const WARM_UP = 100;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Seconds of the epoch. */
export function now() {
  return (performance.timeOrigin + performance.now()) / 1000;
}

/** Collects what handlers see: the first start, and after how many seconds each job was started. */
class Seen {
  first = 0;
  latencies = [];
  #wanted = Infinity;
  #wake = () => {};

  add(created) {
    const time = now();
    this.first ||= time;
    this.latencies.push(time - (created ?? time));
    if (this.latencies.length >= this.#wanted) this.#wake();
  }

  async collect(count) {
    if (this.latencies.length < count) {
      this.#wanted = count;
      await new Promise((resolve) => (this.#wake = resolve));
      this.#wanted = Infinity;
    }
    return this.latencies.splice(0, count);
  }
}

/** Runs the mode that the command line names for a peer: connect, setup, createBatch, createOne, work. */
export async function main(peer) {
  const [mode, count] = [process.argv[2], Number(process.argv[3])];
  const seen = new Seen();
  const announce = async () => {
    console.log("ready");
    await lines.next();
  };
  let result = {};
  if (mode === "setup") {
    await peer.setup();
    process.exit(0);
  } else if (mode === "batch") {
    await peer.connect();
    await peer.createBatch(BATCH);
    await announce();
    result = { seconds: await repeat(count / BATCH, IN_FLIGHT, () => peer.createBatch(BATCH)) };
  } else if (mode === "single") {
    await peer.connect();
    await repeat(WARM_UP, CALLERS, () => peer.createOne({}));
    await announce();
    result = { seconds: await repeat(count, CALLERS, () => peer.createOne({})) };
  } else if (mode === "drain") {
    await announce();
    await peer.work((created) => seen.add(created));
    await seen.collect(count);
    result = { first: seen.first, last: now() };
  } else if (mode === "latency") {
    await peer.work((created) => seen.add(created));
    await paced(peer, seen, WARM_UP);
    await announce();
    result = { latencies: await paced(peer, seen, count) };
  }
  console.log(JSON.stringify(result));
  // Until the caller has read what this process used.
  await lines.next();
  process.exit(0);
}

async function repeat(calls, callers, call) {
  let left = calls;
  const start = now();
  const caller = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return now() - start;
}

async function paced(peer, seen, count) {
  const start = now();
  const calls = [];
  for (let n = 0; n < count; n++) {
    const wait = start + n / PER_SECOND - now();
    if (wait > 0) await sleep(1000 * wait);
    calls.push(peer.createOne({ created: now() }));
  }
  await Promise.all(calls);
  return seen.collect(count);
}

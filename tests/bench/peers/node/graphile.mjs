// graphile-worker with the batching that its page on performance describes.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

import { main } from "./protocol.mjs";

const pool = new pg.Pool({ max: 50 });
pool.on("error", console.error);
pool.on("connect", (client) => client.on("error", console.error));
const logger = new Logger(() => () => {});
const preset = {
  worker: {
    concurrentJobs: 24,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};
let utils;

async function connect() {
  utils ??= await makeWorkerUtils({ pgPool: pool, logger });
}

await main({
  connect,
  async setup() {
    await connect();
    await utils.migrate();
  },
  async createBatch(size) {
    await utils.addJobs(Array.from({ length: size }, () => ({ identifier: "noop", payload: {} })));
  },
  async createOne(payload) {
    await utils.addJob("noop", payload);
  },
  async work(handle) {
    await connect();
    const taskList = { noop: async (payload) => handle(payload.created) };
    await run({ preset, pgPool: pool, logger, noHandleSignals: true, taskList });
  },
});

// pg-boss: ten workers that fetch a thousand jobs each, as often as it allows.
import PgBoss from "pg-boss";

import { main } from "./protocol.mjs";

const QUEUE = "noop";
const WORKERS = 10;
const boss = new PgBoss({ host: process.env.PGHOST, port: Number(process.env.PGPORT), max: 50 });
boss.on("error", (error) => console.error(error));
let started;

function connect() {
  return (started ??= boss.start());
}

await main({
  connect,
  async setup() {
    await connect();
    await boss.createQueue(QUEUE);
  },
  async createBatch(size) {
    await boss.insert(Array.from({ length: size }, () => ({ name: QUEUE })));
  },
  async createOne(data) {
    await boss.send(QUEUE, data);
  },
  async work(handle) {
    await connect();
    const options = { batchSize: 1000, pollingIntervalSeconds: 0.5 };
    for (let n = 0; n < WORKERS; n++)
      await boss.work(QUEUE, options, async (jobs) => jobs.forEach((job) => handle(job.data?.created)));
  },
});

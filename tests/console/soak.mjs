// The browser's half of `make console-soak`: opens every page, follows a long log, watches a busy list.
import os from "node:os";
import { ADMIN_KEY, BASE, call, close, create, launch, open, openings, settled, signedIn } from "./harness.mjs";

const MINUTES = Number(process.env.MINUTES);
const LINES = Number(process.env.LINES);
const OPEN_MS = 1000;
const HEAP_BYTES = 150e6;
// Longer than this without answering to input is a freeze.
const FREEZE_MS = 1000;
const STUCK_MS = 120_000;
const NOWHERE = { placement: { required: { selector: { matchLabels: { zone: "nowhere" } } } } };
const failures = [];
/** The machine's load of the last minute: figures are read beside it. */
const load = () => os.loadavg()[0].toFixed(1);

function judge(what, figure, bound, unit) {
  const good = figure < bound;
  console.log(`${good ? "ok  " : "FAIL"} ${what}: ${figure.toFixed(unit === "MB" ? 1 : 0)} ${unit} (bound ${bound} ${unit}, load ${load()})`);
  if (!good) failures.push(what);
}

/** The heap after a collection. */
async function heap(session) {
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize;
}

/** Begins to record how long the page's thread is busy without a break; returns a function that reads the longest. */
async function freezes(page) {
  await page.evaluate(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, entry.duration); }).observe({ entryTypes: ["longtask"] });
  });
  return () => page.evaluate(() => { const found = globalThis.longest; globalThis.longest = 0; return found; });
}

/** Opens each page as a new document, four times: the median of the last three counts, when modules are compiled. */
async function openPages(page, context) {
  const opened = await openings(context);
  await call("POST", "/v1/tenants/default/schedules?scheduleId=nightly", { cron: ["30 2 * * *"], template: { spec: { execution: { command: { program: "true" } } } } });
  const some = (await call("GET", "/v1/tenants/default/tasks?pageSize=1&filter=status.phase%20%3D%20SUCCEEDED")).body.tasks[0];
  const pages = { overview: "#/overview", tasks: "#/tasks", "tasks, filtered": `#/tasks?filter=${encodeURIComponent("status.phase = FAILED")}&since=all`, task: `#/tasks/default/${some.name.split("/").pop()}`, create: "#/create", schedules: "#/schedules", schedule: "#/schedules/default/nightly", groups: "#/groups", runners: "#/runners", types: "#/types", tenants: "#/tenants", keys: "#/keys", audit: "#/audit", doctor: "#/doctor" };
  for (const [name, hash] of Object.entries(pages)) {
    const took = [];
    for (let turn = 0; turn < 4; turn += 1) took.push(await opened(page, `${BASE}/${hash}`));
    const [fastest, median, slowest] = took.slice(1).sort((left, right) => left - right);
    const longest = await page.evaluate(() => performance.getEntriesByType("resource").filter((each) => each.name.includes("/v1/") && !each.name.includes(":watch") && !each.name.includes("doctor:run")).sort((left, right) => right.duration - left.duration).map((each) => `${each.name.split("/v1/")[1].split("?")[0]} ${Math.round(each.duration)} ms`)[0]);
    judge(`opening ${name} (${Math.round(fastest)} to ${Math.round(slowest)} ms${longest ? `; last longest call ${longest}` : ""})`, median, OPEN_MS, "ms");
  }
}

/** The last stored line of a task. */
const stored = async (id) => (await call("GET", `/v1/tenants/default/tasks/${id}/logs?descending=true&pageSize=1`)).body.entries?.[0]?.message;

/** A task prints a million lines while its page follows and scrolls. */
async function followLog(page, session) {
  await create("long-log", ["seq", String(LINES)]);
  const longest = await freezes(page);
  await open(page, "#/tasks/default/long-log");
  await page.waitForSelector(".log .line");
  const began = performance.now();
  let most = 0;
  let last = "";
  let changedAt = began;
  for (let ended = false; !ended; ) {
    await page.waitForTimeout(2000);
    most = Math.max(most, await heap(session));
    ended = (await page.locator("h1 .phase-succeeded").count()) > 0 && (await page.locator(`.log .line:has-text("${LINES}")`).count()) > 0;
    const shown = await page.locator(".log .line").last().innerText();
    if (shown !== last) changedAt = performance.now();
    last = shown;
    // However busy the machine is, lines arrive.
    if (performance.now() - changedAt > STUCK_MS) { failures.push(`the log stays at ${last} (${await page.locator("section[aria-label=output] [role=status]").innerText()}), ${await stored("long-log")} is stored`); break; }
  }
  judge(`longest freeze while ${LINES.toLocaleString("en-US")} lines arrive in ${((performance.now() - began) / 1000).toFixed(0)} s`, await longest(), FREEZE_MS, "ms");
  judge("heap while following", most / 1e6, HEAP_BYTES / 1e6, "MB");
  await page.uncheck("text=Follow");
  for (let turn = 0; turn < 60; turn += 1) {
    await page.evaluate(() => { const log = document.querySelector(".log"); log.scrollTop = 0; });
    await page.waitForTimeout(50);
  }
  await settled(page);
  const upwards = Number((await page.locator(".log .line").first().innerText()).split(" ").pop());
  await page.click("button:has-text('First line')");
  await page.waitForFunction(() => /(^| )1$/.test(document.querySelector(".log .line")?.innerText || ""));
  for (let turn = 0; turn < 100; turn += 1) {
    await page.evaluate(() => { const log = document.querySelector(".log"); log.scrollTop = log.scrollHeight; });
    await page.waitForTimeout(50);
  }
  await settled(page);
  console.log(`     scrolled back to line ${upwards.toLocaleString("en-US")}, and from the first to line ${await page.locator(".log .line").last().innerText()}`);
  judge("longest freeze while scrolling", await longest(), FREEZE_MS, "ms");
  judge("heap after scrolling", (await heap(session)) / 1e6, HEAP_BYTES / 1e6, "MB");
}

/** About a hundred changes a second: tasks are created and cancelled. */
async function busy(until) {
  let made = 0;
  for (let round = 0; performance.now() < until; round += 1) {
    const began = performance.now();
    const requests = Array.from({ length: 50 }, (_, n) => ({ taskId: `busy-${round}-${n}`, task: { metadata: { labels: { round: String(round) } }, spec: { execution: { command: { program: "true" } }, ...NOWHERE } } }));
    const answer = await call("POST", "/v1/tenants/default/tasks:batchCreate", { requests });
    if (answer.status === 200) made += requests.length;
    else if (made === 0) throw new Error(JSON.stringify(answer.body));
    await call("POST", "/v1/tenants/default/tasks:batchCancel", { filter: `metadata.labels.round = "${round - 1}"` });
    await new Promise((resolve) => { setTimeout(resolve, Math.max(0, 1000 - (performance.now() - began))); });
  }
  return made;
}

async function watchList(page, session) {
  await open(page, "#/tasks");
  const longest = await freezes(page);
  const until = performance.now() + MINUTES * 60_000;
  const work = busy(until);
  let most = 0;
  let samples = 0;
  while (performance.now() < until) {
    await page.waitForTimeout(Math.min(15_000, Math.max(100, until - performance.now())));
    const used = await heap(session);
    most = Math.max(most, used);
    samples += 1;
    if (samples % 8 === 1) console.log(`     heap ${(used / 1e6).toFixed(1)} MB, ${await page.locator("tbody tr").count()} rows`);
  }
  const made = await work;
  const newest = await page.locator("tbody td a").first().innerText();
  if (!newest.startsWith("busy-")) failures.push(`the list shows ${newest} first`);
  judge(`largest heap of ${samples} samples over ${MINUTES} min, ${made.toLocaleString("en-US")} tasks created and cancelled`, most / 1e6, HEAP_BYTES / 1e6, "MB");
  judge("longest freeze of the list", await longest(), FREEZE_MS, "ms");
}

/** The last calls of a page, for a wait that never ended: what it was busy with. */
function recentCalls(page) {
  const recent = [];
  page.on("requestfinished", (request) => { recent.push(`${new Date().toISOString()} ${request.url().replace(BASE, "")} ${Math.round(request.timing().responseEnd)} ms`); recent.splice(0, recent.length - 20); });
  return recent;
}

await launch();
const { page, problems, context } = await signedIn(ADMIN_KEY);
const recent = recentCalls(page);
const session = await context.newCDPSession(page);
try {
  await openPages(page, context);
  if (LINES) await followLog(page, session);
  if (MINUTES) await watchList(page, session);
} catch (error) {
  failures.push(`${error.message}; the last calls were\n  ${recent.join("\n  ")}\n`);
}
await close();
if (problems.length) failures.push(...problems);
console.log(failures.length ? `failed: ${failures.join("; ")}` : "every bound holds");
process.exitCode = failures.length ? 1 : 0;

// What the tests of the console share: the browser, the running suite, and signed-in pages.
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

export const { BASE, KEY, ADMIN_KEY, TASKYARD, FOLDER, CHROMIUM, SHOTS, TASKDB_PID, GATEWAY_PID, LINK, DATABASE } = process.env;
const AXE = fs.readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
export const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"];
// Nothing takes this long on a quiet machine; on a busy one nothing fails by the clock.
const PATIENCE = 120_000;
const run = promisify(execFile);
/** @type {import("playwright-core").Browser} */
let browser;

export const launch = async () => { browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, timeout: PATIENCE }); };
export const close = () => browser.close();
// Under the test runner, each file has its browser.
if (process.env.NODE_TEST_CONTEXT) {
  before(launch);
  after(close);
}

/** The command line of the suite. */
export async function cli(...words) {
  return (await run(TASKYARD, words, { cwd: FOLDER })).stdout.trim();
}

/** Damages the database. */
export const sql = (statement) => run(path.join(path.dirname(TASKYARD), "python"), ["-c", "import psycopg, sys; psycopg.connect(sys.argv[1], autocommit=True).execute(sys.argv[2])", DATABASE, statement]);

/** One call of the gateway, as a script makes it. */
export async function call(method, path, body, key = KEY) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(BASE + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

/** Creates a task that runs this command; throws unless that worked. */
export async function create(id, command, more = {}) {
  const { metadata, ...spec } = more;
  const task = { metadata, spec: { execution: { command: { program: command[0], args: command.slice(1) } }, ...spec } };
  const made = await call("POST", `/v1/tenants/default/tasks?taskId=${id}`, task);
  if (made.status !== 200) throw new Error(JSON.stringify(made.body));
}

/** A context of its own, whose waits are patient. */
export async function context(options = {}) {
  const made = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  made.setDefaultTimeout(PATIENCE);
  return made;
}

/** A page that is signed in by a one-time link, and what went wrong on it. */
export async function signedIn(key = KEY, options = {}, base = BASE) {
  const { code } = (await call("POST", "/v1/signInCodes", {}, key)).body;
  const made = await context(options);
  const page = await made.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(`${base}/#/?code=${code}`);
  await page.waitForSelector("nav");
  return { page, problems, context: made };
}

/** Goes to a page of the console and waits until its calls are answered. */
export async function open(page, hash) {
  await page.evaluate((target) => { location.hash = target; }, hash);
  await settled(page);
}

/** Returns once no call has been in flight for a while. */
export async function settled(page) {
  await page.waitForFunction((quiet) => {
    const state = (globalThis.settling ||= { at: performance.now() });
    const busy = document.body.getAttribute("aria-busy") === "true" || document.querySelector(".loading");
    if (busy) state.at = performance.now();
    if (performance.now() - state.at < quiet) return false;
    delete globalThis.settling;
    return true;
  }, 300, { polling: 20 });
}

/**
 * Lets pages of a context record when they had painted the answer of their last call, in their own clock: on a busy
 * machine this process asks a second later. Returns a function that opens a document anew and reads that time.
 */
export async function openings(context) {
  await context.addInitScript(() => {
    const painted = () => requestAnimationFrame(() => setTimeout(() => { globalThis.paintedAt = performance.now(); }));
    const changed = (records) => { if (records.some((record) => record.target === document.body)) painted(); };
    new MutationObserver(changed).observe(document, { subtree: true, attributeFilter: ["aria-busy"] });
  });
  return async (page, address) => {
    await page.goto("about:blank");
    await page.goto(address);
    await page.waitForSelector("h1");
    await settled(page);
    return page.evaluate(() => globalThis.paintedAt);
  };
}

/** Serious findings of axe on the page as it is. */
export async function seriousFindings(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  return found.violations.filter((each) => ["serious", "critical"].includes(each.impact)).map((each) => `${each.id} ${each.nodes[0].html}`);
}

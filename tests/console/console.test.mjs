// The console in a real browser against a running suite; test_console.py starts the suite and sets the environment.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const { BASE, KEY, ADMIN_KEY, TASKYARD, FOLDER, CHROMIUM, SHOTS, TASKDB_PID } = process.env;
const AXE = fs.readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"];
const WAIT = { timeout: 60_000 };
const run = promisify(execFile);
let browser;

before(async () => { browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS }); });
after(async () => { await browser.close(); });

/** The command line of the suite. */
async function cli(...words) {
  return (await run(TASKYARD, words, { cwd: FOLDER })).stdout.trim();
}

async function call(method, path, body, key = KEY) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(BASE + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

/** A page that is signed in, and what went wrong on it. */
async function signedIn(key, options = {}, base = BASE) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(`${base}/`);
  await page.fill("#key", key);
  await page.click("button:has-text('Sign in')");
  await page.waitForSelector("nav", WAIT);
  return { page, problems, context };
}

const open = (page, hash) => page.evaluate((target) => { location.hash = target; }, hash);

test("a wrong key is refused with the reason", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${BASE}/`);
  await page.fill("#key", "ty_abcdef_0123456789012345678901");
  await page.click("button:has-text('Sign in')");
  assert.match(await page.locator("[role=alert]").innerText(WAIT), /UNAUTHENTICATED.*unknown, expired or revoked/s);
  await page.context().close();
});

test("a one-time link signs in once and leaves no code in the address", async () => {
  const { code } = (await call("POST", "/v1/signInCodes", {})).body;
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${BASE}/#/?code=${code}`);
  await page.waitForSelector("nav", WAIT);
  assert.ok(!page.url().includes(code));
  await page.context().close();
  const second = await (await browser.newContext()).newPage();
  await second.goto(`${BASE}/#/?code=${code}`);
  assert.match(await second.locator("[role=alert]").innerText(WAIT), /SIGN_IN_CODE_INVALID/);
  await second.context().close();
});

test("a task is created, explained beforehand, and followed to its end", async () => {
  const { page, problems, context } = await signedIn(KEY);
  await open(page, "#/create");
  await page.getByLabel("Command line").fill("sh -c 'for n in 1 2 3; do echo line $n; sleep 1; done'");
  await page.getByLabel("Id", { exact: true }).fill("by-hand");
  await page.click("button:has-text('Dry run')");
  await page.waitForSelector("section[aria-label='dry run'] .gates li", WAIT);
  await page.click("button:has-text('Create')");
  await page.waitForSelector("h1:has-text('by-hand')", WAIT);
  await page.waitForSelector(".log .line:has-text('line 3')", WAIT);
  await page.waitForSelector("h1 .phase-succeeded", WAIT);
  assert.equal(await page.locator(".log .line").count(), 3);
  assert.deepEqual(problems, []);
  await context.close();
});

test("what keeps a task from running is shown with a remedy that one click applies", async () => {
  await cli("submit", "--id", "far", "--runner-label", "zone=moon", "--", "echo", "landed");
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await open(page, "#/tasks/default/far");
  await page.click("button:has-text('Set zone=moon')", WAIT);
  await page.waitForSelector("h1 .phase-succeeded", WAIT);
  await cli("runners", "label", "local", "zone=");
  assert.deepEqual(problems, []);
  await context.close();
});

test("all tasks of a filter are cancelled after their count was confirmed", async () => {
  for (const n of [1, 2, 3]) await cli("submit", "--id", `bulk-${n}`, "--label", "batch=x", "--runner-label", "zone=none", "--", "true");
  const { page, problems, context } = await signedIn(KEY);
  await open(page, `#/tasks?filter=${encodeURIComponent('metadata.labels.batch = "x"')}`);
  await page.waitForSelector("td:has-text('bulk-3')", WAIT);
  await page.click("button:has-text('Cancel all')");
  await page.waitForSelector("dialog button:has-text('cancel 3 tasks')", WAIT);
  await page.click("dialog button:has-text('cancel 3 tasks')");
  await page.waitForFunction(() => document.querySelectorAll("td .phase-cancelled").length === 3, null, WAIT);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a viewer sees no buttons that change something, and the server refuses them anyway", async () => {
  const made = await call("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_TENANT", tenant: "default", readOnly: true, description: "viewer" } });
  const { page, problems, context } = await signedIn(made.body.secret);
  await open(page, "#/tasks/default/by-hand");
  await page.waitForSelector("h1 .phase-succeeded", WAIT);
  assert.equal(await page.locator("button:has-text('Clone'), button:has-text('Delete')").count(), 0);
  await open(page, "#/tasks");
  await page.waitForSelector("table", WAIT);
  assert.equal(await page.locator("button:has-text('all…')").count(), 0);
  await open(page, "#/create");
  await page.waitForSelector("text=may only read", WAIT);
  const refused = await page.evaluate(async () => (await fetch("v1/tenants/default/tasks/by-hand:retry", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" })).status);
  assert.equal(refused, 403);
  assert.deepEqual(problems, []);
  await context.close();
});

test("what tasks wrote is shown inert", async () => {
  const naughty = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>\u202eevil\u200b\u001b[31mred`;
  const task = { metadata: { labels: { note: naughty } }, spec: { taskType: "naughty", retry: { restart: "RESTART_POLICY_NEVER", maxRetries: 0 }, payload: { json: { text: naughty } }, execution: { command: { program: "sh", args: ["-c", 'printf "%s\\n" "$1"; exit 3', "sh", naughty] } } } };
  assert.equal((await call("POST", "/v1/tenants/default/tasks?taskId=naughty", task)).status, 200);
  const { page, problems, context } = await signedIn(KEY);
  await open(page, "#/tasks/default/naughty");
  await page.waitForSelector(".log .line:has-text('onerror')", WAIT);
  await page.waitForSelector("h1 .phase-failed", WAIT);
  while (await page.locator("button:has-text('Show')").count()) await page.locator("button:has-text('Show')").first().click();
  const text = await page.locator("main").innerText();
  assert.ok(text.includes("\\u202eevil\\u200b") && !text.includes("\u202e") && !text.includes("\u001b"));
  await open(page, "#/tasks?columns=Labels,What,Phase");
  await page.waitForSelector("td:has-text('onerror')", WAIT);
  await open(page, "#/audit");
  await page.waitForSelector("td:has-text('naughty')", WAIT);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(problems, []);
  await context.close();
});

test("eight tabs share one stream, and go on when the reading tab is closed", async () => {
  const { page, context } = await signedIn(KEY);
  const streams = [];
  context.on("request", (request) => { if (request.url().includes("tasks:watch")) streams.push(request); });
  const tabs = [page];
  for (let n = 0; n < 7; n += 1) {
    const tab = await context.newPage();
    await tab.goto(`${BASE}/#/tasks`);
    tabs.push(tab);
  }
  for (const tab of tabs) await tab.evaluate(() => { location.hash = "#/tasks"; });
  for (const tab of tabs) await tab.waitForSelector("table", WAIT);
  await cli("submit", "--id", "for-all", "--", "true");
  for (const tab of tabs) await tab.waitForSelector("td:has-text('for-all')", WAIT);
  assert.ok(streams.length <= 1, `${streams.length} streams`);
  await tabs[0].close();
  await cli("submit", "--id", "for-the-rest", "--", "true");
  for (const tab of tabs.slice(1)) await tab.waitForSelector("td:has-text('for-the-rest')", WAIT);
  await context.close();
});

test("the list goes on after taskdb was killed", async () => {
  const { page, problems, context } = await signedIn(KEY);
  await open(page, "#/tasks");
  await page.waitForSelector("table", WAIT);
  process.kill(Number(TASKDB_PID), "SIGKILL");
  await page.waitForSelector(".banner", WAIT);
  const deadline = Date.now() + 60_000;
  while ((await call("POST", "/v1/tenants/default/tasks?taskId=after-the-kill", { spec: { execution: { command: { program: "true" } } } })).status >= 500) assert.ok(Date.now() < deadline);
  await page.waitForSelector("td:has-text('after-the-kill')", WAIT);
  await page.waitForSelector(".banner", { ...WAIT, state: "detached" });
  assert.deepEqual(problems, []);
  await context.close();
});

test("it works below a prefix", async () => {
  const gateway = new URL(BASE);
  const proxy = http.createServer((request, response) => {
    const target = { host: gateway.hostname, port: gateway.port, method: request.method, path: request.url.replace(/^\/yard/, ""), headers: request.headers };
    request.pipe(http.request(target, (answer) => { response.writeHead(answer.statusCode, answer.headers); answer.pipe(response); }));
  });
  await new Promise((resolve) => { proxy.listen(0, "127.0.0.1", resolve); });
  const { page, problems, context } = await signedIn(KEY, {}, `http://127.0.0.1:${proxy.address().port}/yard`);
  await open(page, "#/tasks");
  await page.waitForSelector("table", WAIT);
  assert.deepEqual(problems, []);
  await context.close();
  proxy.closeAllConnections();
  proxy.close();
});

const PAGES = { overview: "#/overview", tasks: "#/tasks", task: "#/tasks/default/waits", create: "#/create", runners: "#/runners", types: "#/types", tenants: "#/tenants", keys: "#/keys", audit: "#/audit", doctor: "#/doctor" };
for (const scheme of ["light", "dark"]) {
  before(async () => { if (scheme === "light") await cli("submit", "--id", "waits", "--label", "team=docs", "--runner-label", "zone=mars", "--", "echo", "far"); });
  test(`every page opens, ${scheme}, without a serious finding of axe, from 360 pixels on`, async () => {
    const { page, problems, context } = await signedIn(ADMIN_KEY, { colorScheme: scheme });
    const others = [];
    page.on("request", (request) => { if (!request.url().startsWith(BASE)) others.push(request.url()); });
    for (const [name, hash] of Object.entries(PAGES)) {
      await open(page, hash);
      await page.waitForSelector("h1", WAIT);
      await page.waitForLoadState("networkidle").catch(() => {});
      await page.waitForTimeout(500);
      if (SHOTS) await page.screenshot({ path: `${SHOTS}/console-${name}-${scheme}.png` });
      await page.evaluate(AXE);
      const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
      const serious = found.violations.filter((each) => ["serious", "critical"].includes(each.impact));
      assert.deepEqual(serious.map((each) => `${name}: ${each.id} ${each.nodes[0].html}`), []);
    }
    await page.setViewportSize({ width: 360, height: 700 });
    for (const hash of Object.values(PAGES)) {
      await open(page, hash);
      await page.waitForTimeout(300);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 360, `${hash} is ${wide} pixels wide`);
    }
    assert.deepEqual([...problems, ...others], []);
    await context.close();
  });
}

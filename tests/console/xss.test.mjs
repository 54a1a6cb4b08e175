// Every field that somebody else may fill is shown inert: no markup of it becomes an element, and characters that hide
// or reorder text are visible. The policy of the page would block a script of it, so elements are looked for.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, test } from "node:test";
import { ADMIN_KEY, call, create, KEY, open, settled, signedIn } from "./harness.mjs";

const naughty = (field) => `<img class="naughty" src=x onerror="window.hacked=1"><script>window.hacked=2</script>${field}\u202eevil\u200b\u061c\u00ad\u{e0041}\u001b[31mred`;
// As far as JSON and plain text agree: JSON writes ANSI codes as \\u001b, plain text leaves them out.
const shown = (field) => `<script>window.hacked=2</script>${field}\\u202eevil\\u200b\\u061c\\u00ad\\ue0041`;
// For fields that hold 64 characters.
const short = (field) => `<b class="naughty">${field}</b>\u202e\u061c\u{e0041}`;
const shortShown = (field) => `<b class="naughty">${field}</b>\\u202e\\u061c\\ue0041`;
const base64 = (value) => Buffer.from(value).toString("base64");
// Of this run, so that it can be repeated on a running suite.
const ODD = `odd-${Date.now()}`;
const NOWHERE = { placement: { required: { selector: { matchLabels: { zone: naughty("zone") } } } } };
const ONCE = { retry: { restart: "RESTART_POLICY_NEVER", maxRetries: 0 } };

async function must(method, path, body, key = ADMIN_KEY) {
  const answer = await call(method, path, body, key);
  assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

before(async () => {
  const schema = { type: "object", properties: { city: { type: "string", title: naughty("title"), description: naughty("hint") }, size: { enum: [naughty("choice"), "small"] } } };
  await must("POST", `/v1/tenants/default/taskTypes?taskTypeId=${ODD}`, { description: naughty("about the type"), payloadSchema: base64(JSON.stringify(schema)), execution: { command: { program: "true" } } });
  await must("POST", `/v1/tenants?tenantId=${ODD}`, { displayName: naughty("tenant"), tier: "TENANT_TIER_FREE" });
  await must("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_TENANT", tenant: "default", description: naughty("key") } });
  const template = { metadata: { labels: { note: naughty("template label") } }, spec: { payload: { json: { text: naughty("template payload") } }, execution: { command: { program: "echo", args: [naughty("scheduled")] } } } };
  await must("POST", `/v1/tenants/default/schedules?scheduleId=${ODD}`, { every: "86400s", description: naughty("about the schedule"), template });
  await must("POST", `/v1/tenants/default/schedules/${ODD}:pause`, { note: naughty("pause note") });
  const script = 'printf "%s\\n" "$1"; exit 3';
  await create(ODD, ["sh", "-c", script, "sh", naughty("output")], { metadata: { labels: { note: naughty("label") } }, taskType: "loose", payload: { json: { text: naughty("payload") } }, ...ONCE });
  await create(`${ODD}-waits`, ["echo", naughty("argument")], { ...NOWHERE, env: [{ name: "ODD", value: naughty("variable") }] });
  await create(`${ODD}-cancelled`, ["true"], NOWHERE);
  await must("POST", `/v1/tenants/default/tasks/${ODD}-cancelled:cancel`, { reason: naughty("cancel reason") });
  await create(`${ODD}-member`, ["true"], { ...NOWHERE, metadata: { group: ODD, labels: { note: naughty("label") } } });
  await must("POST", `/v1/tenants/default/groups/${ODD}:cancel`, { reason: naughty("group reason") });
  await must("POST", `/v1/tenants/default/tasks?taskId=${ODD}-external`, { spec: { execution: { external: {} }, ...ONCE } });
  const report = (more) => must("POST", `/v1/tenants/default/tasks/${ODD}-external:reportStatus`, more);
  await report({ phase: "TASK_PHASE_RUNNING", progress: { percent: 40, message: naughty("progress") }, details: { text: naughty("details") } });
  await report({ phase: "TASK_PHASE_FAILED", error: { code: "ODD", message: naughty("error"), details: { text: naughty("error details") } } });
});

/** Waits until each of these fields is on the page, made visible; then nothing of any may be an element, or hidden. */
async function inertOn(page, fields, where = "body", written = shown) {
  for (const field of fields) {
    await page.waitForFunction(([selector, text]) => document.querySelector(selector)?.textContent.includes(text), [where, written(field)]).catch(async () => {
      await nothingLoose(page);
      assert.fail(`${field} is not shown: ${page.url()}`);
    });
  }
  await nothingLoose(page);
}

async function nothingLoose(page) {
  const loose = await page.evaluate(() => {
    const odd = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
    const found = [...document.querySelectorAll(".naughty, [onerror], #app script")].map((element) => element.outerHTML);
    for (const element of document.querySelectorAll("body *")) {
      for (const { name, value } of element.attributes) if (/^(title|aria-label|placeholder|data-title)$/.test(name) && odd.test(value)) found.push(`${name}=${value}`);
      for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE && odd.test(node.data)) found.push(`text ${node.data}`);
    }
    return [...found, ...(globalThis.hacked ? ["a script ran"] : [])];
  });
  assert.deepEqual(loose, [], page.url());
}

const press = async (page, text) => { while (await page.locator(`main button:has-text("${text}")`).count()) await page.locator(`main button:has-text("${text}")`).first().click(); };

test("what tasks carry is shown inert", async () => {
  const { page, problems, context } = await signedIn();
  await open(page, `#/tasks/default/${ODD}`);
  await page.waitForSelector("h1 .phase-failed");
  await press(page, "Show");
  await inertOn(page, ["output", "label", "payload"]);
  await open(page, `#/tasks/default/${ODD}-waits`);
  await inertOn(page, ["zone"], "section[aria-label=explain]");
  await press(page, "Show");
  await inertOn(page, ["argument", "variable"]);
  await open(page, `#/tasks/default/${ODD}-cancelled`);
  await page.waitForSelector("h1 .phase-cancelled");
  await inertOn(page, ["cancel reason"]);
  await open(page, `#/tasks/default/${ODD}-external`);
  await page.waitForSelector("h1 .phase-failed");
  await press(page, "Show");
  await inertOn(page, ["progress", "details", "error"]);
  await open(page, `#/groups/default/${ODD}`);
  await inertOn(page, ["group reason"], "section[aria-label=history]");
  await open(page, `#/tasks/default/${ODD}-member`);
  await page.waitForSelector("h1 .phase-cancelled");
  await inertOn(page, ["group reason"]);
  await open(page, "#/tasks?columns=Labels,What,Phase,Slot,Progress");
  await inertOn(page, ["label", "argument", "progress"], "table");
  await inertOn(page, ["label"], ".chips[aria-label]");
  assert.deepEqual(problems, []);
  await context.close();
});

test("names, notes and filters that people write are shown inert", async () => {
  const { page, problems, context } = await signedIn(KEY);
  await open(page, `#/tasks?filter=${encodeURIComponent(`id = "x" AND ${naughty("filter")}`)}`);
  await page.waitForSelector("main [role=alert]");
  await nothingLoose(page);
  await open(page, "#/tasks");
  await page.click("button:has-text('Save this view')");
  await page.fill("dialog input", naughty("view"));
  await page.click("dialog button:has-text('Save')");
  await inertOn(page, ["view"], ".chip.view");
  await open(page, `#/create?type=${ODD}`);
  await inertOn(page, ["title", "hint", "choice"], "form.create");
  await open(page, "#/schedules");
  await inertOn(page, ["about the schedule", "pause note", "scheduled"], "table");
  await open(page, `#/schedules/default/${ODD}`);
  await page.click("button:has-text('Show the whole template')");
  await inertOn(page, ["about the schedule", "pause note", "template label", "template payload", "scheduled"]);
  await page.click("button:has-text('Edit…')");
  await page.getByLabel("Time zone").fill(naughty("zone"));
  await page.waitForSelector("dialog [role=alert]");
  await nothingLoose(page);
  assert.deepEqual(problems, []);
  await context.close();
});

test("what administrators see of tenants, types, keys, runners and the audit trail is shown inert", async () => {
  const runner = (await must("GET", "/v1/runners")).runners[0];
  const label = await call("PATCH", `/v1/${runner.name}?updateMask=adminLabels`, { name: runner.name, adminLabels: { note: naughty("runner label") } }, ADMIN_KEY);
  assert.equal(label.status, 200, JSON.stringify(label.body));
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await open(page, "#/types");
  await press(page, "Show");
  await inertOn(page, ["about the type"], "table");
  await open(page, "#/tenants");
  await inertOn(page, ["tenant"], "table");
  await open(page, "#/keys");
  await inertOn(page, ["key"], "table");
  await open(page, "#/runners");
  await inertOn(page, ["runner label"], "table");
  await page.click("tr:has-text('local') button:has-text('Why nothing?')");
  await inertOn(page, ["zone"], "section[aria-label='why nothing goes there']");
  await open(page, "#/audit");
  await settled(page);
  await nothingLoose(page);
  await must("PATCH", `/v1/${runner.name}?updateMask=adminLabels`, { name: runner.name });
  assert.deepEqual(problems, []);
  await context.close();
});

test("what workers state about themselves and their runs is shown inert, and a line cannot forge the next one", async () => {
  const type = `${ODD}-fn`;
  await must("POST", `/v1/tenants/default/taskTypes?taskTypeId=${type}`, { execution: { function: {} } });
  await must("POST", `/v1/tenants/default/tasks?taskId=${type}`, { spec: { taskType: type, ...ONCE } });
  const { secret } = await must("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_RUNNER" } });
  const registration = { executionKinds: ["EXECUTION_KIND_FUNCTION"], taskTypes: [type], functions: [type], capacity: 1, labels: { note: naughty("worker label") }, version: short("version") };
  const { lease } = (await must("POST", "/v1/work:claim", { workerId: ODD, requestId: randomUUID(), registration, wait: "30s" }, secret)).assignments[0];
  const entries = [naughty("worker line"), "first\nforged\rline"].map((message, index) => ({ sequence: index + 1, message, level: "LOG_LEVEL_INFO" }));
  await must("POST", "/v1/work:appendLogs", { workerId: ODD, batches: [{ lease, entries }] }, secret);
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await open(page, "#/runners");
  await inertOn(page, ["worker label"], "table");
  await inertOn(page, ["version"], "table", shortShown);
  await open(page, `#/tasks/default/${type}`);
  await inertOn(page, ["worker line"], ".log");
  assert.match(await page.locator(".log .line").nth(1).innerText(), / first\\nforged\\u000dline$/);
  const error = { code: "ODD", message: naughty("worker error"), errorClass: "ERROR_CLASS_PERMANENT" };
  await must("POST", "/v1/work:report", { workerId: ODD, reports: [{ lease, failed: { error } }] }, secret);
  await page.waitForSelector("h1 .phase-failed");
  await inertOn(page, ["worker error"], "dl");
  await inertOn(page, ["worker error"], "section[aria-label=runs]");
  await open(page, "#/create");
  await page.getByLabel("Labels").fill(`${short("key").replaceAll(" ", "")}=x`);
  await page.click("button:text-is('Create')");
  await page.waitForSelector("main [role=alert]:has-text('labels')");
  await nothingLoose(page);
  assert.deepEqual(problems, []);
  await context.close();
});

test("ids of tenants, tasks, runners, types, schedules and groups cannot hold markup at all", async () => {
  const id = encodeURIComponent("<b>x</b>");
  for (const path of [`/v1/tenants?tenantId=${id}`, `/v1/tenants/default/tasks?taskId=${id}`, `/v1/tenants/default/taskTypes?taskTypeId=${id}`, `/v1/tenants/default/schedules?scheduleId=${id}`, `/v1/tenants/default/groups?groupId=${id}`]) {
    assert.equal((await call("POST", path, {}, ADMIN_KEY)).status, 400, path);
  }
  // The webhook of a group is a URI, which has no place for markup either.
  const callback = { url: `https://example.com/${naughty("webhook")}` };
  assert.equal((await call("POST", `/v1/tenants/default/groups?groupId=${ODD}-hook`, { callback })).status, 400);
  assert.ok([400, 404].includes((await call("GET", `/v1/runners/${id}`, undefined, ADMIN_KEY)).status));
});

// What one can do on the pages beyond the first path: timeline, forms, views, quotas, keys, and reading long logs.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { test } from "node:test";
import { ADMIN_KEY, call, create, KEY, open, settled, signedIn } from "./harness.mjs";

const base64 = (value) => Buffer.from(JSON.stringify(value)).toString("base64");

test("the timeline shows runs and back-offs, and the output of both runs", async () => {
  await create("fails-twice", ["sh", "-c", "echo try; exit 7"], { retry: { maxRetries: 1, restart: "RESTART_POLICY_ON_FAILURE" } });
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks/default/fails-twice");
  await page.waitForSelector("h1 .phase-exhausted, h1 .phase-failed");
  await page.waitForSelector("section[aria-label=runs] td:has-text('back-off')");
  assert.equal(await page.locator("section[aria-label=runs] td:has-text('exit 7')").count(), 2);
  // The lines of both runs.
  await page.locator(".log .line:has-text('try')").nth(1).waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("the timeline of an external task shows the writer that came too late", async () => {
  const made = await call("POST", "/v1/tenants/default/tasks?taskId=late-writer", { spec: { execution: { external: {} } } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const report = (phase, enqueue) => call("POST", "/v1/tenants/default/tasks/late-writer:reportStatus", { phase, enqueue });
  assert.equal((await report("TASK_PHASE_RUNNING", false)).status, 200);
  assert.equal((await report("TASK_PHASE_SUCCEEDED", false)).status, 200);
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks/default/late-writer");
  await page.waitForSelector("h1 .phase-succeeded");
  // Refused behind the page's back: it changes nothing of the task, and is shown all the same.
  assert.equal((await report("TASK_PHASE_RUNNING", true)).status, 200);
  await page.waitForSelector("section[aria-label=runs] .warn:has-text('A stale writer was refused')");
  assert.deepEqual(problems, []);
  await context.close();
});

test("the timeline shows the report of a runner that no longer holds its lease, with reason, run and runner", async () => {
  await call("POST", "/v1/tenants/default/taskTypes?taskTypeId=by-worker", { execution: { function: {} } }, ADMIN_KEY);
  const made = await call("POST", "/v1/tenants/default/tasks?taskId=stale-runner", { spec: { taskType: "by-worker" } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const key = (await call("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_RUNNER" } }, ADMIN_KEY)).body.secret;
  const claim = async () => {
    const registration = { executionKinds: ["EXECUTION_KIND_FUNCTION"], taskTypes: ["by-worker"], functions: ["by-worker"], capacity: 1 };
    const { status, body } = await call("POST", "/v1/work:claim", { workerId: "late-worker", requestId: randomUUID(), registration, wait: "30s" }, key);
    assert.equal(status, 200, JSON.stringify(body));
    return body.assignments[0].lease;
  };
  const report = async (...reports) => {
    const { status, body } = await call("POST", "/v1/work:report", { workerId: "late-worker", reports }, key);
    assert.equal(status, 200, JSON.stringify(body));
    return body.results;
  };
  const first = await claim();
  await report({ lease: first, released: { reason: "RELEASE_REASON_NO_CAPACITY" } });
  const second = await claim();
  assert.notEqual(second.generation, first.generation);
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks/default/stale-runner");
  assert.ok((await report({ lease: first, succeeded: {} }))[0].error);
  const row = page.locator("section[aria-label=runs] tr:has(.warn)");
  await row.waitFor();
  assert.match(await row.locator("[data-title=What]").innerText(), /A stale writer was refused: STALE_GENERATION/);
  assert.equal(await row.locator("[data-title=Run]").innerText(), String(first.generation));
  assert.equal(await row.locator("[data-title=Runner]").innerText(), "late-worker");
  await report({ lease: second, succeeded: {} });
  await page.waitForSelector("h1 .phase-succeeded");
  // Repeated and with the page open: it is shown once.
  await report({ lease: first, succeeded: {} });
  await page.reload();
  await page.waitForSelector("h1 .phase-succeeded");
  await settled(page);
  assert.equal(await row.count(), 1);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a form is made from a type's schema, and a task is cloned into it", async () => {
  const schema = { type: "object", required: ["city"], properties: { city: { type: "string", title: "City" }, count: { type: "integer", minimum: 1 } } };
  const type = { description: "Greets a city", payloadSchema: base64(schema), execution: { command: { program: "echo", args: ["hello"] } } };
  const made = await call("POST", "/v1/tenants/default/taskTypes?taskTypeId=greet", type, ADMIN_KEY);
  assert.ok([200, 409].includes(made.status), JSON.stringify(made.body));
  const { page, problems, context } = await signedIn();
  await open(page, "#/types");
  await page.click("tr:has-text('greet') a:has-text('Create a task')");
  await page.getByLabel("City *").fill("Oslo");
  await page.getByLabel("count").fill("3");
  await page.click("button:has-text('Create')");
  await page.waitForSelector("h1 .phase-succeeded");
  await page.click("button:has-text('Show the payload')");
  assert.match(await page.locator("pre.value").innerText(), /"city": "Oslo"/);
  await page.click("button:has-text('Clone')");
  await page.waitForSelector("h1:has-text('Create a task')");
  await page.waitForFunction(() => [...document.querySelectorAll("form.create input")].some((input) => input.value === "Oslo"));
  assert.deepEqual(problems, []);
  await context.close();
});

test("a function by its name and a module by its file are created as they were chosen", async () => {
  const { page, problems, context } = await signedIn();
  await open(page, "#/create");
  await page.getByLabel("Kind").selectOption("function");
  await page.getByLabel("Function", { exact: true }).fill("resize");
  await page.getByLabel("Id", { exact: true }).fill("by-name");
  await page.click("button:has-text('Create')");
  await page.waitForSelector("h1:has-text('by-name')");
  assert.equal((await call("GET", "/v1/tenants/default/tasks/by-name")).body.task.spec.execution.function.function, "resize");
  const module = Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), Buffer.alloc(100_000, 7)]);
  await open(page, "#/create");
  await page.getByLabel("Kind").selectOption("wasm");
  await page.getByLabel("Module").setInputFiles({ name: "large.wasm", mimeType: "application/wasm", buffer: Buffer.alloc(2 * 1024 * 1024 + 1) });
  await page.waitForSelector("[role=alert]:has-text('large.wasm has 2097153 bytes')");
  await page.getByLabel("Module").setInputFiles({ name: "module.wasm", mimeType: "application/wasm", buffer: module });
  await page.waitForSelector("[role=alert]", { state: "detached" });
  await page.getByLabel("Arguments").fill("one 'two three'");
  await page.getByLabel("Id", { exact: true }).fill("by-file");
  await page.click("button:has-text('Create')");
  await page.waitForSelector("h1:has-text('by-file')");
  const { wasm } = (await call("GET", "/v1/tenants/default/tasks/by-file")).body.task.spec.execution;
  assert.deepEqual(wasm.args, ["one", "two three"]);
  assert.ok(Buffer.from(wasm.inline, "base64").equals(module));
  assert.deepEqual(problems, []);
  await context.close();
});

test("a list is narrowed by chips, kept as a view with its columns, and exported", async () => {
  await create("chip-1", ["true"], { metadata: { labels: { colour: "red" } } });
  await create("chip-2", ["true"], { metadata: { labels: { colour: "blue" } } });
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks");
  await page.click("button.chip:has-text('colour=red')");
  await page.waitForSelector("td:has-text('chip-2')", { state: "detached" });
  await page.click("summary:has-text('Columns')");
  await page.check("text=Labels");
  await page.waitForSelector("td:has-text('colour=red')");
  await page.click("button:has-text('Save this view')");
  await page.fill("dialog input", "reds");
  await page.click("dialog button:has-text('Save')");
  await open(page, "#/overview");
  await open(page, "#/tasks");
  await page.waitForSelector("td:has-text('chip-2')");
  await page.click(".chip.view a:has-text('reds')");
  await page.waitForSelector("td:has-text('chip-2')", { state: "detached" });
  await page.waitForSelector("td:has-text('colour=red')");
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('Export')")]);
  const lines = fs.readFileSync(await file.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map((task) => task.metadata.id), ["chip-1"]);
  assert.deepEqual(problems, []);
  await context.close();
});

test("why nothing goes to a runner, a quota that is changed, and a key that is made and revoked", async () => {
  await create("elsewhere", ["true"], { placement: { required: { selector: { matchLabels: { zone: "venus" } } } } });
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await create("held", ["sleep", "300"]);
  await open(page, "#/runners");
  await page.waitForSelector("td a:has-text('held')");
  await call("POST", "/v1/tenants/default/tasks/held:cancel", {});
  await page.click("tr:has-text('local') button:has-text('Why nothing?')");
  await page.waitForSelector("section[aria-label='why nothing goes there'] td:has-text('venus')");
  await page.click("tr:has-text('local') button:has-text('Drain')");
  await page.click("tr:has-text('local') button:has-text('Undrain')");
  await open(page, "#/tenants");
  await page.click("tr:has-text('default') button:has-text('Quota…')");
  await page.getByLabel("Tasks that wait").fill("1234567");
  await page.click("dialog button:has-text('Save')");
  await page.waitForSelector("td:has-text('1,234,567')");
  await open(page, "#/keys");
  await page.getByLabel("For what").fill("made by a test");
  await page.click("button:has-text('Create a key')");
  await page.waitForSelector(".note code");
  await page.click("tr:has-text('made by a test') button:has-text('Revoke…')");
  await page.click("dialog button:has-text('Revoke')");
  await page.waitForSelector("tr:has-text('made by a test') td:has-text('revoked')");
  await open(page, "#/doctor");
  await page.waitForSelector("td:has-text('lease-without-task')");
  assert.deepEqual(problems, []);
  await context.close();
});

test("a long log is followed, scrolled back, read from its first line, searched and downloaded", async () => {
  await create("counts", ["seq", "30000"]);
  const { page, problems, context } = await signedIn(KEY);
  await open(page, "#/tasks/default/counts");
  await page.waitForSelector("h1 .phase-succeeded");
  await page.waitForFunction(() => document.querySelector(".log .line:last-child")?.textContent.endsWith(" 30000"));
  assert.ok((await page.locator(".log .line").count()) < 150, "only the lines on the screen are elements");
  await page.evaluate(() => { document.querySelector(".log").scrollTop = 0; });
  const loaded = () => page.evaluate(() => Number(document.querySelector("section[aria-label=output] [role=status]").textContent.split(" ")[0].replace(",", "")));
  const until = async (count) => { while ((await loaded()) < count) await page.waitForTimeout(50); };
  await until(2000);
  await page.click("button:has-text('First line')");
  await page.waitForFunction(() => document.querySelector(".log .line")?.textContent.endsWith(" 1"));
  await page.evaluate(() => { const log = document.querySelector(".log"); log.scrollTop = log.scrollHeight; });
  await until(2000);
  await page.getByLabel("Search").fill("1999");
  await settled(page);
  assert.equal(await page.locator(".log .line").count(), 1);
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('Download')")]);
  const lines = fs.readFileSync(await file.path(), "utf8").trim().split("\n");
  assert.equal(lines.length, 30000);
  assert.ok(lines[0].endsWith(" 1") && lines[29999].endsWith(" 30000"));
  assert.deepEqual(problems, []);
  await context.close();
});

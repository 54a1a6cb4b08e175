// One task steered by its buttons, what it reports of itself, and how the yard as a whole is doing.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { ADMIN_KEY, call, create, open, settled, signedIn, sql } from "./harness.mjs";

// What taskyard-task runs, for a task whose user may not enter this checkout.
const TASK_HELPER = new URL("../../services/runner/src/taskyard_runner/task_helper.py", import.meta.url);
const NOWHERE = { placement: { required: { selector: { matchLabels: { zone: "mercury" } } } } };
const ONCE = { retry: { restart: "RESTART_POLICY_NEVER", maxRetries: 0 } };
const task = async (id) => (await call("GET", `/v1/tenants/default/tasks/${id}`)).body.task;
const base64 = (text) => Buffer.from(text).toString("base64");

test("a queued task is paused, edited and resumed, and an ended one is retried and deleted", async () => {
  await create("steered", ["sh", "-c", "exit 4"], { ...ONCE, ...NOWHERE, metadata: { labels: { team: "one" } } });
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks/default/steered");
  await page.click("button:text-is('Pause')");
  await page.waitForSelector("h1 .phase-paused");
  await page.click("button:has-text('Edit…')");
  await page.getByLabel("Priority (0 to 1000)").fill("77");
  await page.getByLabel("Labels, one key=value a line").fill("team=two\nnote=a=b");
  await page.click("summary:has-text('The rest of the spec')");
  const spec = JSON.parse(await page.getByLabel("spec", { exact: true }).inputValue());
  await page.getByLabel("spec", { exact: true }).fill(JSON.stringify({ ...spec, placement: {}, env: [{ name: "A", value: "b" }] }));
  await page.click("dialog button:text-is('Save')");
  await page.waitForSelector("dd:has-text('team=two')");
  const edited = await task("steered");
  assert.equal(edited.spec.priority, 77);
  assert.deepEqual(edited.metadata.labels, { team: "two", note: "a=b" });
  assert.deepEqual([edited.spec.env, edited.spec.retry.maxRetries], [[{ name: "A", value: "b" }], 0]);
  await page.click("button:text-is('Resume')");
  await page.waitForSelector("h1 .phase-failed");
  assert.equal(await page.locator("button:has-text('Edit…'), button:text-is('Pause')").count(), 0);
  await page.click("button:text-is('Retry')");
  await page.waitForSelector("section[aria-label=runs] td:has-text('Retried by hand')");
  await page.locator("section[aria-label=runs] td:has-text('exit 4')").nth(1).waitFor();
  await page.click("button:has-text('Delete…')");
  await page.click("dialog button:has-text('Delete the task')");
  await page.waitForSelector("h1:text-is('Tasks')");
  assert.equal((await call("GET", "/v1/tenants/default/tasks/steered")).status, 404);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a task shows its progress, its checkpoints, its result byte for byte, and lines of a level", async () => {
  const odd = "x\u202ey\\u202e\u001b[1mz\u00ad";
  const script = `
    printf '%s' "$1" > helper.py
    report() { python3 -c 'import helper; helper.main()' "$@"; }
    echo plain
    report log --level error worse
    report progress 40 'frames 400/1000'
    printf abc > state && report checkpoint state
    printf '%s' "$2" | base64 -d > out && report result out`;
  await create("reports", ["sh", "-ec", script, "sh", fs.readFileSync(TASK_HELPER, "utf8"), base64(odd)], ONCE);
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks/default/reports");
  await page.waitForSelector("h1 .phase-succeeded, h1 .phase-failed");
  await page.waitForSelector("text=40% frames 400/1000");
  await page.waitForSelector("section[aria-label=checkpoints] td:has-text('3 B')");
  await page.click("button:has-text('Show the result')");
  const value = page.locator("pre.value");
  assert.equal(await value.innerText(), "x\\u202ey\\u202e\\u001b[1mz\\u00ad");
  assert.deepEqual(await value.locator(".odd").allInnerTexts(), ["\\u202e", "\\u001b", "\\u00ad"], "what only looks like an escaped character is not marked");
  await page.waitForSelector(".log .line:has-text('plain')");
  await page.getByLabel("Level").selectOption("ERROR");
  await page.waitForSelector(".log .line:has-text('plain')", { state: "detached" });
  await page.waitForSelector(".log .level-error:has-text('worse')");
  assert.deepEqual(problems, []);
  await context.close();
});

test("the filter is completed while it is typed, and a link to what cannot be an id leads to the overview", async () => {
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks");
  const offered = async (text) => { await page.fill("#filter", text); return page.locator("#fields option").evaluateAll((options) => options.map((option) => option.value)); };
  assert.deepEqual(await offered("spec.ta"), ["spec.task_type"]);
  assert.deepEqual(await offered("spec.priority > 3 AND status.phase = CAN"), ["spec.priority > 3 AND status.phase = CANCELLED"]);
  assert.deepEqual(await offered("id = "), []);
  await page.fill("#filter", "status.phase = ");
  await page.keyboard.press("Enter");
  await page.waitForSelector("main [role=alert]:has-text('FILTER_INVALID')");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  for (const hash of ["#/tasks/%E0%A4%A/x", "#/tasks/default/..%2F..%2Fkeys", "#/tasks/default/..", "#/overview?tenant=..%2F.."]) {
    await open(page, "#/tasks");
    await open(page, hash);
    await page.waitForSelector("h1:text-is('Overview')");
  }
  assert.deepEqual(asked.filter((url) => /%2F|\.\./i.test(new URL(url).pathname)), []);
  assert.deepEqual(problems, []);
  await context.close();
});

test("the overview counts phases, leads to what waits longest, and compares shares with weights", async () => {
  await create("waits-long", ["true"], NOWHERE);
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  // An answer may be seconds old when it is read.
  await page.route("**/tasks:stats*", async (route) => {
    const response = await route.fetch();
    await new Promise((resolve) => { setTimeout(resolve, 2500); });
    await route.fulfill({ response });
  });
  await page.reload();
  await open(page, "#/overview");
  await page.waitForSelector("a:text-is('The oldest')");
  const pending = page.locator(".tile", { hasText: "PENDING" });
  assert.ok(Number(await pending.locator("b").innerText()) >= 1);
  await page.waitForSelector("text=1 healthy, 0 draining, 0 dead");
  const created = await page.locator("[data-chart=created] polyline").getAttribute("points");
  assert.equal(created.split(" ").length, 60);
  assert.ok(new Set(created.split(" ").map((point) => point.split(",")[1])).size > 1, "this hour has no tasks");
  const { shares } = (await call("GET", "/v1/tenants:shares", undefined, ADMIN_KEY)).body;
  const row = page.locator("section[aria-label=shares] tr:has-text('default')");
  const { weight, dueShare } = shares.find((share) => share.tenant === "tenants/default");
  assert.deepEqual(await Promise.all(["Weight", "Share by weight"].map((title) => row.locator(`td[data-title='${title}']`).innerText())), [String(weight), `${Math.round(dueShare * 100)}%`]);
  await page.click("a:text-is('The oldest')");
  await page.waitForSelector("h1:text-is('Tasks')");
  await settled(page);
  const oldest = (await call("GET", "/v1/tenants/-/tasks?filter=status.phase%20%3D%20PENDING&pageSize=1000", undefined, ADMIN_KEY)).body.tasks.at(-1);
  await page.waitForSelector(`td[data-title=Task] a:text-is("${oldest.metadata.id}")`);
  assert.deepEqual(problems, []);
  await context.close();
});

test("what the doctor finds is repaired after it was confirmed", async () => {
  await sql("INSERT INTO timers (due_time, kind, tenant_id, task_id) VALUES (now() + interval '1 day', 1, 'default', 'ghost')");
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await open(page, "#/overview");
  await page.waitForSelector("section[aria-label=doctor] .problem:has-text('timer-without-task')");
  await open(page, "#/doctor");
  await page.waitForSelector(".problem:has-text('Some invariants do not hold')");
  const row = page.locator("tr:has-text('timer-without-task')");
  assert.equal(await row.locator("td[data-title=Found]").innerText(), "1");
  assert.equal(await page.locator("button:has-text('Repair…')").count(), 1);
  await row.locator("button:has-text('Repair…')").click();
  await page.click("dialog button:text-is('Repair')");
  await page.waitForSelector("text=timer-without-task: 1 repaired");
  await page.waitForSelector(".good:has-text('Every invariant holds')");
  assert.equal(await page.locator("button:has-text('Repair…')").count(), 0);
  assert.deepEqual(problems, []);
  await context.close();
});

// Schedules, and tasks that wait for others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN_KEY, call, create, KEY, open, signedIn } from "./harness.mjs";

const NOWHERE = { placement: { required: { selector: { matchLabels: { zone: "pluto" } } } } };

test("a schedule is created with its times in view, runs at once, is paused with a note, edited and deleted", async () => {
  const { page, problems, context } = await signedIn(KEY, { timezoneId: "Europe/Berlin" });
  await open(page, "#/schedules");
  await page.click("button:has-text('New schedule…')");
  await page.getByLabel("Id", { exact: true }).fill("by-form");
  await page.getByLabel("Cron lines, one a line").fill("30 2 * * *");
  // The zone is the browser's until another is written.
  await page.waitForSelector("dialog td:has-text('T02:30:00+0')");
  await page.getByLabel("Cron lines, one a line").fill("61 2 * * *");
  assert.match(await page.locator("dialog [role=alert]").first().innerText(), /FIELD_INVALID.*61/s);
  await page.getByLabel("Cron lines, one a line").fill("30 2 * * *\n@yearly");
  await page.getByLabel("Command line").fill("sh -c 'echo at $TASKYARD_SCHEDULED_TIME'");
  await page.getByLabel("About").fill("made by a form");
  await page.click("dialog button:has-text('Create the schedule')");
  await page.click("td a:has-text('by-form')");
  await page.waitForSelector("h1 .state-active");
  await page.locator("section[aria-label='next times'] tbody tr").nth(9).waitFor();
  assert.equal(await page.locator("section[aria-label='next times'] tbody tr").count(), 10);
  await page.click("button:has-text('Run now')");
  await page.waitForSelector("h1:has-text('by-form.')");
  await page.waitForSelector("h1 .phase-succeeded");
  await page.waitForSelector(".log .line:has-text('at 20')");
  await page.click("dd a:has-text('by-form')");
  await page.waitForSelector("section[aria-label=events] td:has-text('schedule.run')");
  await page.click("button:has-text('Pause…')");
  await page.getByLabel("Why").fill("the warehouse is moved");
  await page.click("dialog button:has-text('Pause')");
  await page.waitForSelector("h1:has-text('the warehouse is moved')");
  await page.click("button:has-text('Resume')");
  await page.waitForSelector("h1 .state-active");
  await page.click("button:has-text('Edit…')");
  assert.equal(await page.getByLabel("Command line").inputValue(), `sh -c "echo at $TASKYARD_SCHEDULED_TIME"`);
  await page.getByLabel("Cron lines, one a line").fill("");
  await page.getByLabel("And every … seconds").fill("3600");
  await page.getByLabel("Time zone").fill("Asia/Tokyo");
  await page.click("dialog button:has-text('Save')");
  await page.waitForSelector("dd:has-text('every 1h (Asia/Tokyo)')");
  const stored = (await call("GET", "/v1/tenants/default/schedules/by-form")).body.schedule;
  assert.deepEqual([stored.cron, stored.every, stored.description], [undefined, "3600s", "made by a form"]);
  await page.click("button:has-text('Delete…')");
  await page.click("dialog button:has-text('Delete the schedule')");
  await page.waitForSelector("h1:has-text('Schedules')");
  assert.equal((await call("GET", "/v1/tenants/default/schedules/by-form")).status, 404);
  assert.deepEqual(problems, []);
  await context.close();
});

test("times that come round create tasks, which the page of the schedule lists", async () => {
  const schedule = { every: "1s", overlap: "SCHEDULE_OVERLAP_SKIP", remainingRuns: "1", template: { spec: { ...NOWHERE, execution: { command: { program: "true" } } } } };
  assert.equal((await call("POST", "/v1/tenants/default/schedules?scheduleId=ticks", schedule)).status, 200);
  const { page, problems, context } = await signedIn();
  await open(page, "#/schedules/default/ticks");
  await page.waitForSelector("section[aria-label=events] tr:has-text('schedule.fired') td a:has-text('ticks.')");
  await page.waitForSelector("h1 .state-ended");
  // The task of the only run is still live, so that another one would overlap.
  await page.click("button:has-text('Run now')");
  await page.waitForSelector("[role=status]:has-text('is still live')");
  assert.deepEqual(problems, []);
  await context.close();
});

test("a viewer sees schedules and no buttons", async () => {
  await call("POST", "/v1/tenants/default/schedules?scheduleId=seen", { every: "3600s", template: { spec: { execution: { command: { program: "true" } } } } });
  const made = await call("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_TENANT", tenant: "default", readOnly: true, description: "viewer of schedules" } });
  const { page, problems, context } = await signedIn(made.body.secret);
  await open(page, "#/schedules");
  await page.waitForSelector("td a:has-text('seen')");
  assert.equal(await page.locator("main button").count(), 0);
  await open(page, "#/schedules/default/seen");
  await page.waitForSelector("section[aria-label='next times'] td");
  assert.deepEqual(await page.locator("main button").allInnerTexts(), ["Show the whole template"]);
  const refused = await page.evaluate(async () => (await fetch("v1/tenants/default/schedules/seen:run", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" })).status);
  assert.equal(refused, 403);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a task shows what it waits for and what waits for it, as a graph with links", async () => {
  await create("extract", ["true"], NOWHERE);
  await create("fetch", ["true"]);
  await create("join", ["true"], { after: [{ task: "extract", alias: "rows" }, { task: "fetch", when: "DEPENDENCY_CONDITION_ENDED" }] });
  await create("mail", ["true"], { after: [{ task: "join" }] });
  await create("tidy", ["true"], { after: [{ task: "join", when: "DEPENDENCY_CONDITION_NOT_SUCCEEDED" }] });
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await open(page, "#/tasks/default/join");
  const graph = page.locator(".graph svg");
  await graph.getByRole("link", { name: "fetch SUCCEEDED, has to be ended" }).waitFor();
  await graph.getByRole("link", { name: "extract PENDING" }).waitFor();
  assert.equal(await graph.getByRole("link").count(), 4);
  assert.equal(await graph.locator(".edge.open").count(), 1);
  await page.waitForSelector("section[aria-label=explain] .gates li:has-text('dependency')");
  await graph.getByRole("link", { name: "mail PENDING" }).click();
  await page.waitForSelector("h1:has-text('mail')");
  await page.locator(".graph svg").getByRole("link", { name: "join PENDING" }).waitFor();
  // A box is drawn, not only laid out: it has a size.
  const box = await page.locator(".graph .node.own").boundingBox();
  assert.ok(box && box.width > 100 && box.height > 20);
  await open(page, "#/tasks/default/fetch");
  await page.locator(".graph svg").getByRole("link", { name: "join PENDING" }).waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

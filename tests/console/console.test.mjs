// What the console does, in a real browser against a running suite; test_console.py starts the suite and sets the environment.
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { ADMIN_KEY, BASE, call, cli, context as newContext, create, GATEWAY_PID, KEY, LINK, open, signedIn, TASKDB_PID } from "./harness.mjs";

test("a newcomer gets from the printed link to a running task, its output and its explanation, with the keyboard alone", async () => {
  const page = await (await newContext({ viewport: { width: 360, height: 740 } })).newPage();
  await page.goto(LINK);
  await page.waitForSelector("button:has-text('Run an example')");
  const onExample = () => page.evaluate(() => document.activeElement?.textContent === "Run an example");
  for (let presses = 0; !(await onExample()); presses += 1) {
    assert.ok(presses < 40, "the example is not reached");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
  await page.waitForSelector(".log .line:has-text('step 2 of 60')");
  await page.waitForSelector("section[aria-label=explain] [role=status]:has-text('It runs on runner local')");
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.waitForSelector("section[aria-label='newest tasks'] td:has-text('example-')");
  await page.context().close();
});

test("a wrong key is refused with the reason, a right one signs in, and out", async () => {
  const page = await (await newContext()).newPage();
  await page.goto(`${BASE}/`);
  await page.fill("#key", "ty_abcdef_0123456789012345678901");
  await page.click("button:has-text('Sign in')");
  assert.match(await page.locator("[role=alert]").innerText(), /UNAUTHENTICATED.*unknown, expired or revoked/s);
  await page.fill("#key", KEY);
  await page.click("button:has-text('Sign in')");
  await page.waitForSelector("nav");
  await page.click("button:has-text('Sign out')");
  await page.waitForSelector("#key");
  await page.context().close();
});

test("a one-time link signs in once and leaves no code in the address", async () => {
  const { code } = (await call("POST", "/v1/signInCodes", {})).body;
  const page = await (await newContext()).newPage();
  await page.goto(`${BASE}/#/?code=${code}`);
  await page.waitForSelector("nav");
  assert.ok(!page.url().includes(code));
  await page.context().close();
  const second = await (await newContext()).newPage();
  await second.goto(`${BASE}/#/?code=${code}`);
  assert.match(await second.locator("[role=alert]").innerText(), /SIGN_IN_CODE_INVALID/);
  await second.context().close();
});

test("a task is created, explained beforehand, and followed to its end", async () => {
  const { page, problems, context } = await signedIn();
  await open(page, "#/create");
  await page.getByLabel("Command line").fill("sh -c 'for n in 1 2 3; do echo line $n; sleep 1; done'");
  await page.getByLabel("Id", { exact: true }).fill("by-hand");
  await page.click("button:has-text('Dry run')");
  await page.waitForSelector("section[aria-label='dry run'] .gates li");
  await page.click("button:has-text('Create')");
  await page.waitForSelector("h1:has-text('by-hand')");
  await page.waitForSelector(".log .line:has-text('line 3')");
  await page.waitForSelector("h1 .phase-succeeded");
  assert.equal(await page.locator(".log .line").count(), 3);
  assert.deepEqual(problems, []);
  await context.close();
});

test("what keeps a task from running is shown with a remedy that one click applies", async () => {
  await create("far", ["echo", "landed"], { placement: { required: { selector: { matchLabels: { zone: "moon" } } } } });
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  await open(page, "#/tasks/default/far");
  await page.click("button:has-text('Set zone=moon')");
  await page.waitForSelector("h1 .phase-succeeded");
  await cli("runners", "label", "local", "zone=");
  assert.deepEqual(problems, []);
  await context.close();
});

test("all tasks of a filter are cancelled after their count was confirmed", async () => {
  for (const n of [1, 2, 3]) await create(`bulk-${n}`, ["true"], { metadata: { labels: { batch: "x" } }, placement: { required: { selector: { matchLabels: { zone: "none" } } } } });
  await create("bulk-other", ["true"], { placement: { required: { selector: { matchLabels: { zone: "none" } } } } });
  const { page, problems, context } = await signedIn();
  await open(page, `#/tasks?filter=${encodeURIComponent('metadata.labels.batch = "x"')}`);
  await page.waitForSelector("td:has-text('bulk-3')");
  await page.click("button:has-text('Cancel all')");
  await page.waitForSelector("dialog button:has-text('cancel 3 tasks')");
  await page.click("dialog button:has-text('cancel 3 tasks')");
  await page.waitForFunction(() => document.querySelectorAll("td .phase-cancelled").length === 3, null);
  assert.equal((await call("GET", "/v1/tenants/default/tasks/bulk-other")).body.task.status.phase, "TASK_PHASE_PENDING");
  await call("POST", "/v1/tenants/default/tasks/bulk-other:cancel", {});
  assert.deepEqual(problems, []);
  await context.close();
});

test("a viewer sees no buttons that change something, and the server refuses them anyway", async () => {
  const made = await call("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_TENANT", tenant: "default", readOnly: true, description: "viewer" } });
  await create("for-viewers", ["true"], { metadata: { group: "for-viewers" }, placement: { required: { selector: { matchLabels: { zone: "none" } } } } });
  await call("POST", "/v1/tenants/default/schedules?scheduleId=for-viewers", { every: "86400s", template: { spec: { execution: { command: { program: "true" } } } } });
  await call("POST", "/v1/tenants/default/taskTypes?taskTypeId=for-viewers", { execution: { command: { program: "true" } } });
  const { page, problems, context } = await signedIn(made.body.secret);
  const reads = /^(Sign out|Keyboard shortcuts|Apply|Clear|Export|Download|Show.*|Hide|First line|Last line|Older .*)$/;
  for (const [hash, ready] of [["#/overview", "td:has-text('for-viewers')"], ["#/tasks", "td:has-text('for-viewers')"], ["#/tasks/default/for-viewers", ".gates li"], ["#/tasks/default/by-hand", "h1 .phase-succeeded"], ["#/create", "text=may only read"], ["#/schedules", "td:has-text('for-viewers')"], ["#/schedules/default/for-viewers", "h2:has-text('Next times')"], ["#/groups", "td:has-text('for-viewers')"], ["#/groups/default/for-viewers", "td:has-text('for-viewers')"], ["#/types", "td:has-text('for-viewers')"], ["#/keys", "td:has-text('viewer')"], ["#/audit", "td:has-text('task.created')"]]) {
    await open(page, hash);
    await page.waitForSelector(ready);
    const buttons = await page.locator("button:not(.chip), a.button").allInnerTexts();
    assert.deepEqual(buttons.filter((text) => !reads.test(text)), [], hash);
  }
  const refused = await page.evaluate(async () => (await fetch("v1/tenants/default/tasks/by-hand:retry", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" })).status);
  assert.equal(refused, 403);
  assert.deepEqual(problems, []);
  await context.close();
});

test("what tasks wrote is shown inert", async () => {
  const naughty = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>\u202eevil\u200b\u001b[31mred`;
  const task = { metadata: { labels: { note: naughty } }, spec: { taskType: "naughty", retry: { restart: "RESTART_POLICY_NEVER", maxRetries: 0 }, payload: { json: { text: naughty } }, execution: { command: { program: "sh", args: ["-c", 'printf "%s\\n" "$1"; exit 3', "sh", naughty] } } } };
  assert.equal((await call("POST", "/v1/tenants/default/tasks?taskId=naughty", task)).status, 200);
  const { page, problems, context } = await signedIn();
  await open(page, "#/tasks/default/naughty");
  await page.waitForSelector(".log .line:has-text('onerror')");
  await page.waitForSelector("h1 .phase-failed");
  while (await page.locator("button:has-text('Show')").count()) await page.locator("button:has-text('Show')").first().click();
  const text = await page.locator("main").innerText();
  assert.ok(text.includes("\\u202eevil\\u200b") && !text.includes("\u202e") && !text.includes("\u001b"));
  await open(page, "#/tasks?columns=Labels,What,Phase");
  await page.waitForSelector("td:has-text('onerror')");
  await open(page, "#/audit");
  await page.waitForSelector("td:has-text('naughty')");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(problems, []);
  await context.close();
});

test("eight tabs share one stream, and go on when the reading tab is closed", async () => {
  const { page, context } = await signedIn();
  const streams = new Set();
  let most = 0;
  context.on("request", (request) => { if (request.url().includes("tasks:watch")) most = Math.max(most, streams.add(request).size); });
  for (const end of ["requestfinished", "requestfailed"]) context.on(end, (request) => streams.delete(request));
  const tabs = [page];
  for (let n = 0; n < 7; n += 1) {
    const tab = await context.newPage();
    await tab.goto(`${BASE}/#/tasks`);
    tabs.push(tab);
  }
  for (const tab of tabs) await tab.evaluate(() => { location.hash = "#/tasks"; });
  for (const tab of tabs) await tab.waitForSelector("table");
  await create("for-all", ["true"]);
  for (const tab of tabs) await tab.waitForSelector("td:has-text('for-all')");
  assert.ok(most <= 1, `${most} streams at once`);
  await tabs[0].close();
  await create("for-the-rest", ["true"]);
  for (const tab of tabs.slice(1)) await tab.waitForSelector("td:has-text('for-the-rest')");
  await context.close();
});

for (const [service, pid] of [["taskdb", TASKDB_PID], ["gateway", GATEWAY_PID]]) {
  test(`the list goes on after ${service} was killed`, async () => {
    const { page, problems, context } = await signedIn();
    await open(page, "#/tasks");
    await page.waitForSelector("table");
    process.kill(Number(pid), "SIGKILL");
    await page.waitForSelector(".banner");
    const id = `after-the-kill-of-${service}`;
    while (!(await create(id, ["true"]).then(() => true, () => false))) await new Promise((resolve) => { setTimeout(resolve, 250); });
    await page.waitForSelector(`td:has-text('${id}')`);
    await page.waitForSelector(".banner", { state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  });
}

test("keys go to pages, open the list of keys, and give the focus back", async () => {
  const { page, problems, context } = await signedIn(ADMIN_KEY);
  for (const [keys, title] of [["g t", "Tasks"], ["g y", "Task types"], ["g e", "Tenants and quotas"], ["g g", "Groups"], ["g d", "Doctor"], ["n", "Create a task"]]) {
    for (const key of keys.split(" ")) await page.keyboard.press(key);
    await page.waitForSelector(`h1:text-is("${title}")`);
  }
  await page.focus("footer button");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog dt:has-text('g y')");
  assert.equal(await page.locator("dialog dt").count(), 14);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Keyboard shortcuts");
  assert.deepEqual(problems, []);
  await context.close();
});

test("it works below a prefix", async () => {
  const gateway = new URL(BASE);
  const proxy = http.createServer((request, response) => {
    const target = { host: gateway.hostname, port: gateway.port, method: request.method, path: request.url.replace(/^\/yard/, ""), headers: request.headers };
    const upstream = http.request(target, (answer) => { response.writeHead(answer.statusCode, answer.headers); answer.pipe(response); });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise((resolve) => { proxy.listen(0, "127.0.0.1", resolve); });
  const { page, problems, context } = await signedIn(KEY, {}, `http://127.0.0.1:${proxy.address().port}/yard`);
  await open(page, "#/tasks");
  await page.waitForSelector("table");
  assert.deepEqual(problems, []);
  await context.close();
  proxy.closeAllConnections();
  proxy.close();
});


// Groups: the list, one group with its counts and its graph, and the buttons to steer it.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { call, create, KEY, open, seriousFindings, signedIn } from "./harness.mjs";

const NOWHERE = { placement: { required: { selector: { matchLabels: { zone: "neptune" } } } } };
const ONCE = { retry: { restart: "RESTART_POLICY_NEVER", maxRetries: 0 } };
const INTO = (group, more = {}) => ({ metadata: { group }, ...ONCE, ...more });
const counts = (page) => page.locator("section[aria-label=counts] b").allInnerTexts();

before(async () => {
  // fetch -> compile -> package, fetch -> package, check alone; compile never ends by itself.
  await create("g-fetch", ["true"], INTO("build"));
  await call("POST", "/v1/tenants/default/limits?limitId=machines", { maxRunning: "4" });
  await create("g-check", ["false"], INTO("build", { limits: [{ limit: "machines", key: "a/b", units: "2" }] }));
  await create("g-compile", ["true"], INTO("build", { after: [{ task: "g-fetch" }], ...NOWHERE }));
  await create("g-package", ["true"], INTO("build", { after: [{ task: "g-compile", when: "DEPENDENCY_CONDITION_ENDED" }, { task: "g-fetch" }], ...NOWHERE }));
});

test("a group shows its counts, its tasks and the graph of what they wait for", async () => {
  const { page, problems, context } = await signedIn();
  await open(page, "#/overview");
  await page.keyboard.press("g");
  await page.keyboard.press("g");
  await page.waitForSelector("h1:has-text('Groups')");
  await page.locator("tr:has-text('build') td[data-title='Not succeeded']:has-text('1')").waitFor();
  const row = page.locator("tr", { has: page.getByRole("link", { name: "build", exact: true }) });
  assert.deepEqual(await Promise.all(["State", "Live", "Succeeded", "Not succeeded"].map((title) => row.locator(`td[data-title='${title}']`).innerText())), ["open", "2", "1", "1"]);
  await page.click(".chip:has-text('complete')");
  await row.waitFor({ state: "detached" });
  await page.click(".chip:has-text('open')");
  await row.getByRole("link").click();
  await page.waitForSelector("h1 .state-open");
  assert.deepEqual(await counts(page), ["1", "1", "2"]);
  await page.getByRole("img", { name: "1 succeeded, 1 did not succeed, 2 live" }).waitFor();
  const widths = await page.locator(".counts rect").evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("width"))));
  assert.deepEqual(widths, [25, 25, 50]);
  assert.equal(await page.locator("section[aria-label=tasks] tbody tr").count(), 4);
  const graph = page.locator(".graph svg");
  const edges = await graph.locator(".edge title").evaluateAll((titles) => titles.map((title) => title.textContent));
  assert.deepEqual(edges.sort(), ["g-compile waits until g-fetch has succeeded", "g-package waits until g-compile has ended", "g-package waits until g-fetch has succeeded"]);
  assert.equal(await graph.locator(".edge.open").count(), 1);
  // The task that waits for nothing is listed, not drawn; each other stands right of all that it waits for.
  const places = {};
  for (const id of ["g-fetch", "g-compile", "g-package"]) places[id] = (await graph.getByRole("link", { name: id }).locator("rect").boundingBox()).x;
  assert.ok(places["g-fetch"] < places["g-compile"] && places["g-compile"] < places["g-package"], JSON.stringify(places));
  assert.equal(await graph.getByRole("link").count(), 3);
  // An arrow across a column passes the boxes there.
  const crossed = await graph.evaluate((svg) => {
    const box = [...svg.querySelectorAll("a")].find((each) => each.textContent.includes("g-compile")).querySelector("rect").getBBox();
    const arrow = [...svg.querySelectorAll(".edge")].find((each) => each.textContent.includes("g-package waits until g-fetch"));
    const points = Array.from({ length: 200 }, (_, index) => arrow.getPointAtLength((arrow.getTotalLength() * index) / 199));
    return points.filter(({ x, y }) => x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height).length;
  });
  assert.equal(crossed, 0, "the arrow is hidden by a box");
  assert.deepEqual(await seriousFindings(page), []);
  // What is created later appears without a click.
  await create("g-late", ["true"], INTO("build"));
  await page.waitForSelector("section[aria-label=tasks] td a:has-text('g-late')");
  await page.waitForSelector("section[aria-label=counts] b.good:has-text('2')");
  await graph.getByRole("link", { name: "g-compile PENDING" }).click();
  await page.waitForSelector("h1:has-text('g-compile')");
  await page.click("dd a:has-text('build')");
  await page.waitForSelector("h1:has-text('build')");
  await page.click("section[aria-label=tasks] td a:has-text('g-check')");
  await page.waitForSelector("dl div:has-text('Limits') dd:text-is('machines:a/b × 2')");
  assert.deepEqual(problems, []);
  await context.close();
});

test("a viewer sees groups and no buttons that change them", async () => {
  const made = await call("POST", "/v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_TENANT", tenant: "default", readOnly: true, description: "viewer of groups" } });
  const { page, problems, context } = await signedIn(made.body.secret);
  await open(page, "#/groups/default/build");
  await page.waitForSelector("section[aria-label=tasks] td");
  assert.equal(await page.locator("main button").count(), 0);
  const refused = await page.evaluate(async () => (await fetch("v1/tenants/default/groups/build:cancel", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" })).status);
  assert.equal(refused, 403);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a group is closed, and cancelled with a reason, after it was confirmed", async () => {
  const { page, problems, context } = await signedIn(KEY);
  await open(page, "#/groups/default/build");
  await page.click("button:has-text('Close…')");
  await page.click("dialog button:has-text('Close the group')");
  await page.waitForSelector("h1 .state-closed");
  assert.equal(await page.locator("button:has-text('Close…')").count(), 0);
  await create("g-announce", ["true"], { after: [{ group: "build", when: "DEPENDENCY_CONDITION_NOT_SUCCEEDED" }] });
  await page.click("button:has-text('Cancel…')");
  await page.getByLabel("Why").fill("a newer build");
  await page.click("dialog button:has-text('Keep it as it is')");
  assert.equal((await call("GET", "/v1/tenants/default/groups/build")).body.group.cancelTime, undefined);
  await page.click("button:has-text('Cancel…')");
  await page.getByLabel("Why").fill("a newer build");
  await page.click("dialog button:has-text('Cancel the group')");
  await page.waitForSelector("h1 .state-complete");
  assert.deepEqual(await counts(page), ["2", "3", "0"]);
  assert.equal(await page.locator("main .toolbar button").count(), 0);
  await page.waitForSelector("section[aria-label=history] td:has-text('a newer build')");
  await page.waitForSelector("section[aria-label=tasks] tr:has-text('g-compile') .phase-cancelled");
  // What waits for the group shows it in its own graph.
  await open(page, "#/tasks/default/g-announce");
  await page.waitForSelector("h1 .phase-succeeded");
  await page.locator(".graph svg").getByRole("link", { name: "build COMPLETE, has to be not succeeded" }).click();
  await page.waitForSelector("h1 .state-complete");
  assert.deepEqual(problems, []);
  await context.close();
});

test("of a large group the newest 100 tasks are drawn, and the page states it", async () => {
  await create("many-0", ["true"], INTO("many", NOWHERE));
  const parts = Array.from({ length: 100 }, (_, index) => `many-${index + 1}`);
  await Promise.all(parts.map((id) => create(id, ["true"], INTO("many", { after: [{ task: "many-0" }], ...NOWHERE }))));
  await create("many-last", ["true"], INTO("many", { after: [{ task: "many-1" }, { task: "many-100" }], ...NOWHERE }));
  const { page, problems, context } = await signedIn();
  await open(page, "#/groups/default/many");
  await page.waitForSelector("section[aria-label=graph] p:has-text('Of the newest 100 tasks only.')");
  assert.equal(await page.locator("section[aria-label=tasks] tbody tr").count(), 100);
  await page.click("button:has-text('Older tasks')");
  await page.waitForSelector("section[aria-label=tasks] td a:text-is('many-0')");
  // The oldest task is listed now, and still not drawn with those that wait for it.
  assert.ok((await page.locator(".graph svg a").count()) <= 3);
  await call("POST", "/v1/tenants/default/groups/many:cancel", {});
  await page.waitForSelector("h1 .state-complete");
  assert.deepEqual(problems, []);
  await context.close();
});

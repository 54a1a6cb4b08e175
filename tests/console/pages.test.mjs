// Every page opens, in light and dark, without a serious finding of axe, on wide and narrow screens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ADMIN_KEY, BASE, call, open, seriousFindings, SHOTS, signedIn } from "./harness.mjs";
import { fillYard } from "./shots_data.mjs";

/** Where each page is, and what it shows once it works. @type {Record<string, [string, string]>} */
const PAGES = {
  overview: ["#/overview", "section[aria-label='newest tasks'] td:has-text('announce-release')"],
  tasks: ["#/tasks", "td:has-text('import-customers')"],
  task: ["#/tasks/default/render-intro", "section[aria-label=explain] button:has-text('Set gpu=a100')"],
  graph: ["#/tasks/default/join-orders-and-stock", "section[aria-label=dependencies] svg a:has-text('extract-stock')"],
  log: ["#/tasks/default/extract-stock", ".log .line:has-text('of the stock list')"],
  create: ["#/create", "form.create option:has-text('render-video')"],
  schedules: ["#/schedules", "td:has-text('nightly-report')"],
  schedule: ["#/schedules/default/nightly-report", "td:has-text('+01:00'), td:has-text('+02:00')"],
  groups: ["#/groups", "td:has-text('release-4.2')"],
  group: ["#/groups/default/release-4.2", "section[aria-label=graph] svg a:has-text('package-x86')"],
  "after-group": ["#/tasks/default/announce-release", "svg a:has-text('release-4.2')"],
  runners: ["#/runners", "td:has-text('extract-stock')"],
  types: ["#/types", "td:has-text('Renders the frames of a scene')"],
  tenants: ["#/tenants", "td:has-text('Studio North')"],
  keys: ["#/keys", "td:has-text('scheduler')"],
  audit: ["#/audit", "td:has-text('task.failed')"],
  doctor: ["#/doctor", "section[aria-label=quarantines] .empty"],
};

before(fillYard);
after(() => call("POST", "/v1/tenants/default/tasks/extract-stock:cancel", {}));

for (const colorScheme of ["light", "dark"]) {
  test(`every page opens, ${colorScheme}, without a serious finding of axe`, async () => {
    const { page, problems, context } = await signedIn(ADMIN_KEY, { colorScheme });
    const others = [];
    page.on("request", (request) => { if (!request.url().startsWith(BASE)) others.push(request.url()); });
    for (const [name, [hash, works]] of Object.entries(PAGES)) {
      await open(page, hash);
      await page.waitForSelector(works, { state: "attached" });
      assert.deepEqual(await page.locator("main [role=alert]").allInnerTexts(), [], name);
      if (name === "group") await page.waitForSelector("section[aria-label=tasks] tr:has-text('test-x86') .phase-succeeded");
      if (name === "group") await page.getByRole("img", { name: "4 succeeded, 1 did not succeed, 2 live" }).waitFor();
      if (name === "create") await page.click("button:has-text('Dry run')");
      if (name === "create") await page.waitForSelector("section[aria-label='dry run'] .gates li");
      // An examination goes on in the background; a picture shows what it found.
      if (SHOTS && /overview|doctor/.test(name)) await page.waitForSelector("p:has-text('Every invariant holds')");
      if (SHOTS) await page.screenshot({ path: `${SHOTS}/console-${name}-${colorScheme}.png` });
      assert.deepEqual(await seriousFindings(page), [], name);
    }
    assert.deepEqual([...problems, ...others], []);
    await context.close();
  });
}

test("no page is wider than a screen of 360 pixels", async () => {
  const { page, problems, context } = await signedIn(ADMIN_KEY, { viewport: { width: 360, height: 700 } });
  for (const [name, [hash, works]] of Object.entries(PAGES)) {
    await open(page, hash);
    await page.waitForSelector(works, { state: "attached" });
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/narrow-${name}.png` });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${name} is ${wide} pixels wide`);
  }
  assert.deepEqual(problems, []);
  await context.close();
});

// Every page opens, in light and dark, without a serious finding of axe, on wide and narrow screens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ADMIN_KEY, BASE, call, open, seriousFindings, SHOTS, signedIn } from "./harness.mjs";
import { fillYard } from "./shots_data.mjs";

const PAGES = { overview: "#/overview", tasks: "#/tasks", task: "#/tasks/default/render-intro", graph: "#/tasks/default/join-orders-and-stock", log: "#/tasks/default/extract-stock", create: "#/create", schedules: "#/schedules", schedule: "#/schedules/default/nightly-report", groups: "#/groups", group: "#/groups/default/release-4.2", "after-group": "#/tasks/default/announce-release", runners: "#/runners", types: "#/types", tenants: "#/tenants", keys: "#/keys", audit: "#/audit", doctor: "#/doctor" };

before(fillYard);
after(() => call("POST", "/v1/tenants/default/tasks/extract-stock:cancel", {}));

for (const colorScheme of ["light", "dark"]) {
  test(`every page opens, ${colorScheme}, without a serious finding of axe`, async () => {
    const { page, problems, context } = await signedIn(ADMIN_KEY, { colorScheme });
    const others = [];
    page.on("request", (request) => { if (!request.url().startsWith(BASE)) others.push(request.url()); });
    for (const [name, hash] of Object.entries(PAGES)) {
      await open(page, hash);
      if (name === "group") await page.waitForSelector("section[aria-label=tasks] tr:has-text('test-x86') .phase-succeeded");
      if (name === "group") await page.getByRole("img", { name: "4 succeeded, 1 did not succeed, 2 live" }).waitFor();
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
  for (const [name, hash] of Object.entries(PAGES)) {
    await open(page, hash);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/narrow-${name}.png` });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${name} is ${wide} pixels wide`);
  }
  assert.deepEqual(problems, []);
  await context.close();
});

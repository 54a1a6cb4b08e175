// What the pages show when they are looked at: a yard at work, as small as it can be.
import { ADMIN_KEY, call } from "./harness.mjs";

const base64 = (value) => Buffer.from(JSON.stringify(value)).toString("base64");
const shell = (script) => ({ execution: { command: { program: "sh", args: ["-c", script] } } });
const ONCE = { retry: { maxRetries: 0, restart: "RESTART_POLICY_NEVER" } };
const GPU = { placement: { required: { selector: { matchLabels: { gpu: "a100" } } } } };
const RENDER = { type: "object", required: ["scene"], properties: { scene: { type: "string", title: "Scene" }, frames: { type: "integer", minimum: 1 } } };

async function ensure(path, body) {
  const { status, body: answer } = await call("POST", path, body, ADMIN_KEY);
  if (status !== 200 && status !== 409) throw new Error(`${path}: ${JSON.stringify(answer)}`);
}

/** Types, schedules, tasks in several phases, a small graph, and a group with its graph. */
export async function fillYard() {
  await ensure("/v1/tenants/default/taskTypes?taskTypeId=render-video", { description: "Renders the frames of a scene", payloadSchema: base64(RENDER), ...shell("echo rendering") });
  await ensure("/v1/tenants/default/taskTypes?taskTypeId=send-report", { description: "Mails the figures of a day", ...shell("echo sent") });
  await ensure("/v1/tenants?tenantId=studio", { displayName: "Studio North", tier: "TENANT_TIER_PREMIUM" });
  const report = { description: "Figures of the day before", cron: ["30 2 * * *"], timeZone: "Europe/Berlin", template: { spec: { taskType: "send-report" } } };
  await ensure("/v1/tenants/default/schedules?scheduleId=nightly-report", report);
  await ensure("/v1/tenants/default/schedules?scheduleId=clean-up", { description: "Removes what nobody has used for a week", every: "900s", template: { spec: shell("echo clean") } });
  const tasks = {
    "thumbnails-1041": { metadata: { group: "thumbnails-2026-11-18", labels: { team: "media" } }, spec: shell("seq 1 200 | sed 's/^/thumbnail /'") },
    "thumbnails-1042": { metadata: { group: "thumbnails-2026-11-18", labels: { team: "media" } }, spec: shell("seq 1 40 | sed 's/^/thumbnail /'") },
    "report-2026-11-16": { metadata: { labels: { team: "docs" } }, spec: { taskType: "send-report" } },
    "import-customers": { metadata: { labels: { team: "sales" } }, spec: { ...shell("echo 'line 1207: no such country: Atlantis' >&2; exit 3"), ...ONCE } },
    "extract-orders": { metadata: { labels: { team: "sales" } }, spec: shell("echo '18,204 orders'") },
    "extract-stock": { metadata: { labels: { team: "sales" } }, spec: shell("n=0; while :; do n=$((n+1)); echo \"page $n of the stock list\"; sleep 2; done") },
    "join-orders-and-stock": { metadata: { labels: { team: "sales" } }, spec: { ...shell("echo joined"), after: [{ task: "extract-orders", alias: "orders" }, { task: "extract-stock", alias: "stock" }] } },
    "mail-to-buyers": { metadata: { labels: { team: "sales" } }, spec: { taskType: "send-report", after: [{ task: "join-orders-and-stock" }] } },
    "alert-on-failure": { metadata: { labels: { team: "sales" } }, spec: { ...shell("echo alert"), after: [{ task: "join-orders-and-stock", when: "DEPENDENCY_CONDITION_NOT_SUCCEEDED" }] } },
    "render-intro": { metadata: { labels: { team: "media" } }, spec: { taskType: "render-video", payload: { json: { scene: "intro", frames: 240 } }, ...GPU } },
  };
  const release = (script, after = [], more = {}) => ({ metadata: { group: "release-4.2", labels: { team: "build" } }, spec: { ...shell(script), after: after.map((task) => ({ task })), ...ONCE, ...more } });
  Object.assign(tasks, {
    "fetch-sources": release("echo 'checked out 4.2'"),
    "compile-x86": release("echo compiled", ["fetch-sources"]),
    "compile-arm": release("echo compiled", ["fetch-sources"]),
    "test-x86": release("echo '812 passed'", ["compile-x86"]),
    "test-arm": release("echo 'test_clock: off by 1' >&2; exit 1", ["compile-arm"]),
    "sign-off": release("echo signed", ["fetch-sources"], GPU),
    "package-x86": release("echo packed", ["test-x86", "sign-off"]),
    "announce-release": { metadata: { labels: { team: "build" } }, spec: { ...shell("echo announced"), after: [{ group: "release-4.2", when: "DEPENDENCY_CONDITION_ENDED" }] } },
  });
  for (const [id, task] of Object.entries(tasks)) await ensure(`/v1/tenants/default/tasks?taskId=${id}`, task);
}

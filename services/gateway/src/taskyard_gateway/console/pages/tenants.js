// Tenants, their limits and what they use of them.
import { all, call, get } from "../api.js";
import { html, useState } from "../dom.js";
import { inert, last, number, word } from "../format.js";
import { Problem, Table, useRead } from "../parts.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Tenants({ me }) {
  const read = async () => {
    const tenants = await all("v1/tenants", "tenants");
    const usages = await Promise.all(tenants.slice(0, 50).map((tenant) => get(`v1/${tenant.name}:usage`).catch(() => ({}))));
    return tenants.map((tenant, index) => ({ ...tenant, usage: usages[index] || {} }));
  };
  const { value, error, reload } = useRead(read, [], 5000);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const set = (/** @type {any} */ tenant, /** @type {string} */ field, /** @type {boolean} */ on) =>
    call("PATCH", `v1/${tenant.name}`, { name: tenant.name, [field]: on }, { updateMask: field }).then(reload, setProblem);
  const limit = (/** @type {any} */ used, /** @type {any} */ most) => `${number(used)} / ${Number(most || 0) ? number(most) : "∞"}`;
  return html`<h1>Tenants and quotas</h1><${Problem} error=${problem || error} />
    <${Table} rows=${value || []} empty="None." columns=${[
      ["Tenant", (/** @type {any} */ tenant) => last(tenant.name)],
      ["Name", (/** @type {any} */ tenant) => inert(tenant.displayName)],
      ["Tier", (/** @type {any} */ tenant) => word(tenant.tier, "TENANT_TIER_").toLowerCase()],
      ["Running", (/** @type {any} */ tenant) => limit(tenant.usage.activeTasks, tenant.usage.effectiveQuota?.maxConcurrentTasks)],
      ["Waiting", (/** @type {any} */ tenant) => limit(tenant.usage.queuedTasks, tenant.usage.effectiveQuota?.maxQueueDepth)],
      ["State", (/** @type {any} */ tenant) => (tenant.suspended ? "suspended" : tenant.queuePaused ? "paused" : "active")],
      ["", (/** @type {any} */ tenant) => me.writes ? html`<button onClick=${() => set(tenant, "queuePaused", !tenant.queuePaused)}>${tenant.queuePaused ? "Resume its queue" : "Pause its queue"}</button>` : null],
    ]} />`;
}

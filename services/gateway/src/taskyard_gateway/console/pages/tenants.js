// Tenants, their limits and what they use of them.
import { all, call, get, post } from "../api.js";
import { html, useState } from "../dom.js";
import { inert, last, number, word } from "../format.js";
import { Confirm, Problem, Table, useRead } from "../parts.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Tenants({ me }) {
  const read = async () => {
    const tenants = await all("v1/tenants", "tenants");
    const usages = await Promise.all(tenants.slice(0, 50).map((tenant) => get(`v1/${tenant.name}:usage`).catch(() => ({}))));
    return tenants.map((tenant, index) => ({ ...tenant, usage: usages[index] || {} }));
  };
  const { value, error, reload } = useRead(read, [], 5000);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const set = (/** @type {any} */ tenant, /** @type {string} */ field, /** @type {boolean} */ on) =>
    call("PATCH", `v1/${tenant.name}`, { name: tenant.name, [field]: on }, { updateMask: field }).then(reload, setProblem);
  const limit = (/** @type {any} */ used, /** @type {any} */ most) => `${number(used)} / ${Number(most || 0) ? number(most) : "∞"}`;
  const create = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const id = String(form.get("id"));
    await post(`v1/tenants?tenantId=${encodeURIComponent(id)}`, { displayName: id, tier: form.get("tier") }).then(() => { setProblem(null); event.target.reset(); reload(); }, setProblem);
  };
  return html`<h1>Tenants and quotas</h1><${Problem} error=${problem || error} />
    ${me.writes ? html`<form class="toolbar" onSubmit=${create}><label>Id <input name="id" required pattern="[A-Za-z0-9._\\-]{1,64}" /></label>
      <label>Tier <select name="tier">${["STANDARD", "FREE", "PREMIUM", "ENTERPRISE"].map((tier) => html`<option value=${`TENANT_TIER_${tier}`}>${tier.toLowerCase()}</option>`)}</select></label><button class="primary">Create a tenant</button></form>` : null}
    <${Table} rows=${value} error=${error} empty="None." columns=${[
      ["Tenant", (/** @type {any} */ tenant) => last(tenant.name)],
      ["Name", (/** @type {any} */ tenant) => inert(tenant.displayName)],
      ["Tier", (/** @type {any} */ tenant) => word(tenant.tier, "TENANT_TIER_").toLowerCase()],
      ["Running", (/** @type {any} */ tenant) => limit(tenant.usage.activeTasks, tenant.usage.effectiveQuota?.maxConcurrentTasks)],
      ["Waiting", (/** @type {any} */ tenant) => limit(tenant.usage.queuedTasks, tenant.usage.effectiveQuota?.maxQueueDepth)],
      ["Creates / s", (/** @type {any} */ tenant) => (Number(tenant.effectiveQuota?.rateLimitPerSec || 0) ? number(tenant.effectiveQuota.rateLimitPerSec) : "∞")],
      ["Weight", (/** @type {any} */ tenant) => number(tenant.effectiveQuota?.weight)],
      ["State", (/** @type {any} */ tenant) => (tenant.suspended ? "suspended" : tenant.queuePaused ? "paused" : "active")],
      ["", (/** @type {any} */ tenant) => me.writes ? html`<button onClick=${() => set(tenant, "queuePaused", !tenant.queuePaused)}>${tenant.queuePaused ? "Resume its queue" : "Pause its queue"}</button>
        <button onClick=${() => set(tenant, "suspended", !tenant.suspended)}>${tenant.suspended ? "End the suspension" : "Suspend"}</button>
        <button onClick=${() => setEdited(tenant)}>Quota…</button>` : null],
    ]} />
    ${edited ? html`<${Quota} tenant=${edited} onDone=${reload} onClose=${() => setEdited(null)} />` : null}`;
}

/** @type {[string, string][]} */
const LIMITS = [
  ["maxConcurrentTasks", "Tasks that run at once"],
  ["maxQueueDepth", "Tasks that wait"],
  ["rateLimitPerSec", "Creates a second"],
  ["rateBurst", "Creates at once"],
  ["weight", "Weight of its share"],
  ["maxStorageBytes", "Bytes stored"],
];

/** Limits of its own; an empty field means the tier's. @param {{tenant: any, onDone: () => void, onClose: () => void}} properties */
function Quota({ tenant, onDone, onClose }) {
  const [limits, setLimits] = useState(/** @type {Record<string, string>} */ (Object.fromEntries(LIMITS.map(([name]) => [name, String(tenant.quota?.[name] ?? "")]))));
  const save = async () => {
    const quota = Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== ""));
    await call("PATCH", `v1/${tenant.name}`, { name: tenant.name, quota }, { updateMask: "quota" });
    onDone();
  };
  return html`<${Confirm} title=${`Quota of ${last(tenant.name)}`} action="Save" onConfirm=${save} onClose=${onClose}>
    <p>An empty field means the limit of its tier; 0 means none.</p>
    ${LIMITS.map(([name, label]) => html`<label>${label} <input type="number" min="0" value=${limits[name]} placeholder=${`now ${number(tenant.effectiveQuota?.[name])}`} onInput=${(/** @type {any} */ event) => setLimits((before) => ({ ...before, [name]: event.target.value }))} /></label>`)}</${Confirm}>`;
}

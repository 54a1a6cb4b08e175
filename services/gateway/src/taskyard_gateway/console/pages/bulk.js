// Actions on all tasks that a filter finds, after their number was confirmed, and their export.
import { call, get, post } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { inert, number } from "../format.js";
import { saveAs } from "../log.js";
import { Confirm, Problem } from "../parts.js";

/** @type {Record<string, string>} */
const SUITABLE = {
  cancel: "status.phase = LIVE",
  retry: "(status.phase = FAILED OR status.phase = TIMED_OUT OR status.phase = CANCELLED OR status.phase = EXHAUSTED)",
  delete: "status.phase = TERMINAL",
};
// The server counts so far.
const MOST_COUNTED = 100_000;
const MOST_EXPORTED = 100_000;

/** @param {{action: string, filter: string, tenant: string, onClose: () => void, onDone: () => void}} properties */
export function Bulk({ action, filter, tenant, onClose, onDone }) {
  const [count, setCount] = useState(/** @type {any} */ (undefined));
  const [done, setDone] = useState(0);
  const whole = filter ? `(${filter}) AND ${SUITABLE[action]}` : SUITABLE[action];
  useEffect(() => {
    get(`v1/tenants/${tenant}/tasks`, { filter: whole, pageSize: 1, countTotal: true, view: "TASK_VIEW_NAME" }).then((page) => setCount(Number(page.totalSize || 0)), setCount);
  }, []);
  const run = async () => {
    try {
      await (action === "delete" ? removeAll(tenant, whole, setDone) : changeAll(action, tenant, whole, setDone));
    } finally {
      onDone();
    }
  };
  const counted = typeof count === "number";
  const many = counted ? `${number(count)}${count >= MOST_COUNTED ? " or more" : ""} tasks` : "";
  return html`<${Confirm} title=${`${action[0].toUpperCase() + action.slice(1)} tasks of ${tenant}`} action=${`${action} ${many}`} disabled=${!counted || count === 0} onConfirm=${run} onClose=${onClose}>
    <p>${counted ? html`<b>${many}</b> match <code>${inert(whole)}</code>.` : count ? html`<${Problem} error=${count} />` : "Counting…"}</p>
    ${done ? html`<p role="status">${number(done)} done.</p>` : null}</${Confirm}>`;
}

/** @param {string} action @param {string} tenant @param {string} filter @param {(count: number) => void} report */
async function changeAll(action, tenant, filter, report) {
  const path = `v1/tenants/${tenant}/tasks:batch${action === "cancel" ? "Cancel" : "Retry"}`;
  for (let more = true, total = 0; more; ) {
    const answer = await post(path, action === "cancel" ? { filter, reason: "console" } : { filter });
    const refused = (answer.results || []).filter((/** @type {any} */ each) => each.error);
    const changed = (answer.results || []).length - refused.length;
    report((total += changed));
    if (refused.length && !changed) throw new Error(`${number(refused.length)} tasks were refused: ${refused[0].error.message}`);
    more = Boolean(answer.more);
  }
}

/** @param {string} tenant @param {string} filter @param {(count: number) => void} report */
async function removeAll(tenant, filter, report) {
  for (let total = 0; ; ) {
    const page = await get(`v1/tenants/${tenant}/tasks`, { filter, pageSize: 100, view: "TASK_VIEW_NAME" });
    const names = (page.tasks || []).map((/** @type {any} */ task) => task.name);
    if (!names.length) return;
    await Promise.all(names.map((/** @type {string} */ name) => call("DELETE", `v1/${name}`)));
    report((total += names.length));
  }
}

/** Every task that the filter finds, one JSON object a line. @param {{parent: string, filter: string}} properties */
export function Export({ parent, filter }) {
  const [done, setDone] = useState(-1);
  const [error, setError] = useState(/** @type {any} */ (null));
  const save = async () => {
    /** @type {Blob[]} */
    const parts = [];
    setError(null);
    try {
      for (let pageToken = "", count = 0; ; ) {
        const page = await get(`v1/${parent}/tasks`, { filter, pageSize: 1000, pageToken });
        parts.push(new Blob((page.tasks || []).map((/** @type {any} */ task) => JSON.stringify(task) + "\n")));
        setDone((count += (page.tasks || []).length));
        pageToken = page.nextPageToken || "";
        if (!pageToken || count >= MOST_EXPORTED) break;
      }
      saveAs(new Blob(parts, { type: "application/x-ndjson" }), "tasks.ndjson");
    } catch (problem) {
      setError(problem);
    }
    setDone(-1);
  };
  return html`<button disabled=${done >= 0} onClick=${save} title=${`At most the newest ${number(MOST_EXPORTED)}`}>${done >= 0 ? `${number(done)} tasks…` : "Export"}</button><${Problem} error=${error} />`;
}

// One task: what it is, why it does or does not run, its runs, output, result and history.
import { all, get } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { age, bytesText, clock, inert, last, phaseOf, size, tenantOf, TERMINAL, took, what, word } from "../format.js";
import { live } from "../live.js";
import { Log } from "../log.js";
import { Hidden, nameLink, Phase, Problem, Progress, Table, taskLink, useNow, useRead } from "../parts.js";
import { Dependencies } from "./dependencies.js";
import { Explanation } from "./explain.js";
import { scheduleLink } from "./schedules.js";
import { Actions } from "./task_actions.js";
import { History, Timeline, useAudit } from "./timeline.js";

/** @param {{me: import("../main.js").Me, tenant: string, id: string}} properties */
export function TaskPage({ me, tenant, id }) {
  const name = `tenants/${tenant}/tasks/${id}`;
  const { value, error, reload } = useRead(() => get(`v1/${name}`), [name]);
  const now = useNow();
  // A report that was refused leaves the task as it is: its version does not count all that happens to it.
  const [changes, setChanges] = useState(0);
  const audit = useAudit(name, changes);
  useEffect(() => {
    const listener = (/** @type {any[]} */ events) => {
      if (!events.some((event) => event.type === "RESYNC" || event.task?.name === name)) return;
      reload();
      setChanges((before) => before + 1);
    };
    live.listeners.add(listener);
    return () => { live.listeners.delete(listener); };
  }, [name]);
  const task = value?.task;
  if (!task) return html`<h1>${inert(id)}</h1>${error ? html`<${Problem} error=${error} />` : html`<p class="loading">Loading…</p>`}`;
  const phase = phaseOf(task);
  return html`<h1>${inert(id)} <${Phase} phase=${phase} /></h1>
    <${Problem} error=${error} />
    ${me.writes ? html`<${Actions} task=${task} onDone=${reload} />` : null}
    <${Summary} me=${me} task=${task} now=${now} />
    ${TERMINAL.has(phase) ? null : html`<section aria-label="explain"><h2>Why</h2><${Explanation} me=${me} subject=${{ name }} version=${task.metadata?.resourceVersion} /></section>`}
    <${Dependencies} task=${task} />
    <section aria-label="runs"><h2>Timeline</h2><${Timeline} name=${name} changes=${changes} now=${now} audit=${audit} /></section>
    <section aria-label="output"><h2>Output</h2><${Log} name=${name} /></section>
    <section aria-label="input and result"><h2>Input and result</h2><${Values} task=${task} /></section>
    <${Checkpoints} name=${name} sequence=${task.status?.checkpointSequence} />
    <${Children} task=${task} />
    <section aria-label="history"><h2>History</h2><${History} audit=${audit} /></section>`;
}

/** @param {{me: import("../main.js").Me, task: any, now: number}} properties */
function Summary({ me, task, now }) {
  const { metadata = {}, spec = {}, status = {} } = task;
  const rows = [
    ["Runs", html`<code>${what(spec)}</code>`],
    ["Type", inert(spec.taskType)],
    ["Tenant", me.admin ? tenantOf(task.name) : ""],
    ["Created", `${clock(metadata.createTime)} (${age(metadata.createTime, now)} ago) by ${inert(metadata.creator?.id)}`],
    ["Took", took(status, now)],
    ["Runner", last(status.runner || status.lastRunner)],
    ["Attempt", status.attempt ? [status.attempt, counted(status.retryCount, "retry", "retries"), counted(status.runnerLossCount, "lost runner", "lost runners")].filter(Boolean).join(", ") : ""],
    ["Exit code", status.exitCode ?? ""],
    ["Waits", word(status.pendingReason, "PENDING_REASON_").toLowerCase()],
    ["Next attempt", status.nextAttemptTime ? clock(status.nextAttemptTime) : ""],
    ["Requested", status.requestedAction ? `${word(status.requestedAction.action, "TASK_ACTION_").toLowerCase()} ${inert(status.requestedAction.reason)}` : ""],
    ["Error", status.error ? `${status.error.code || ""} ${inert(status.error.message)}` : ""],
    ["Priority", spec.priority ?? ""],
    ["Slot", inert(spec.slot)],
    ["Limits", inert((spec.limits || []).map((/** @type {any} */ use) => `${last(use.limit)}${use.key ? `:${use.key}` : ""}${Number(use.units || 1) > 1 ? ` × ${use.units}` : ""}`).join(", "))],
    ["Group", metadata.group ? html`<a href=${nameLink(`tenants/${tenantOf(task.name)}/groups/${metadata.group}`)}>${inert(metadata.group)}</a>` : ""],
    ["Schedule", spec.schedule ? html`<a href=${scheduleLink(spec.schedule)}>${inert(last(spec.schedule))}</a>, ${clock(spec.scheduledTime)}` : ""],
    ["Labels", inert(Object.entries(metadata.labels || {}).map(([key, value]) => `${key}=${value}`).join("  "))],
  ];
  return html`<dl>${rows.filter(([, value]) => value !== "").map(([title, value]) => html`<div class=${title === "Error" || title === "Runs" ? "wide" : ""}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
    <${Progress} percent=${status.progress?.percent} message=${status.progress?.message} />`;
}

/** @param {number | undefined} count @param {string} one @param {string} many */
const counted = (count, one, many) => (count ? `${count} ${count === 1 ? one : many}` : "");

/** @param {any} payload */
function payloadText(payload) {
  if (!payload) return "";
  return payload.raw !== undefined ? bytesText(payload.raw) : JSON.stringify(payload.json, null, 2);
}

/** @param {{task: any}} properties */
function Values({ task }) {
  const { spec = {}, status = {} } = task;
  return html`${spec.payload ? html`<p><${Hidden} label="the payload" text=${() => payloadText(spec.payload)} /></p>` : html`<p class="empty">No payload.</p>`}
    ${status.result?.output ? html`<p><${Hidden} label="the result" text=${() => payloadText(status.result.output)} /></p>` : null}
    ${status.details ? html`<p><${Hidden} label="details" text=${() => JSON.stringify(status.details, null, 2)} /></p>` : null}
    <p><${Hidden} label="the whole spec" text=${() => JSON.stringify(spec, null, 2)} /></p>`;
}

/** @param {{name: string, sequence: string}} properties */
function Checkpoints({ name, sequence }) {
  const { value, error } = useRead(() => (Number(sequence || 0) ? all(`v1/${name}/checkpoints`, "checkpoints") : Promise.resolve([])), [name, sequence]);
  if (!error && !value?.length) return null;
  return html`<section aria-label="checkpoints"><h2>Checkpoints</h2><${Problem} error=${error} /><${Table} rows=${value || []} empty="None." columns=${[
    ["Sequence", (/** @type {any} */ row) => row.sequence],
    ["Size", (/** @type {any} */ row) => size(row.sizeBytes)],
    ["Stored", (/** @type {any} */ row) => clock(row.createTime)],
  ]} /></section>`;
}

/** @param {{task: any}} properties */
function Children({ task }) {
  const tenant = task.name.split("/")[1];
  const { value } = useRead(() => get(`v1/tenants/${tenant}/tasks`, { filter: `metadata.parent_task = "${task.name}"`, pageSize: 50 }), [task.name]);
  const parent = task.metadata?.parentTask;
  if (!parent && !value?.tasks?.length) return null;
  return html`<section aria-label="children"><h2>Parent and children</h2>${parent ? html`<p>Created by <a href=${taskLink(parent)}>${inert(last(parent))}</a>.</p>` : null}
    <${Table} rows=${value?.tasks || []} empty="It has no children." columns=${[
      ["Task", (/** @type {any} */ child) => html`<a href=${taskLink(child.name)}>${inert(last(child.name))}</a>`],
      ["Phase", (/** @type {any} */ child) => html`<${Phase} phase=${phaseOf(child)} />`],
    ]} /></section>`;
}

// One task: what it is, why it does or does not run, its runs, output, result and history.
import { all, call, get, post } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { age, bytesText, clock, duration, inert, last, phaseOf, size, TERMINAL, took, what, word } from "../format.js";
import { live } from "../live.js";
import { Log } from "../log.js";
import { Confirm, Hidden, Phase, Problem, Progress, Table, taskLink, useNow, useRead } from "../parts.js";
import { Explanation } from "./explain.js";
import { go, link } from "../router.js";

/** @param {{me: import("../main.js").Me, tenant: string, id: string}} properties */
export function TaskPage({ me, tenant, id }) {
  const name = `tenants/${tenant}/tasks/${id}`;
  const { value, error, reload } = useRead(() => get(`v1/${name}`), [name]);
  const now = useNow();
  useEffect(() => {
    const listener = (/** @type {any[]} */ events) => {
      if (events.some((event) => event.type === "RESYNC" || event.task?.name === name)) reload();
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
    <${Summary} task=${task} now=${now} />
    ${TERMINAL.has(phase) ? null : html`<section aria-label="explain"><h2>Why</h2><${Explanation} me=${me} subject=${{ name }} version=${task.metadata?.resourceVersion} /></section>`}
    <section aria-label="runs"><h2>Runs</h2><${Timeline} name=${name} version=${task.metadata?.resourceVersion} now=${now} /></section>
    <section aria-label="output"><h2>Output</h2><${Log} name=${name} /></section>
    <section aria-label="input and result"><h2>Input and result</h2><${Values} task=${task} /></section>
    <section aria-label="checkpoints"><h2>Checkpoints</h2><${Checkpoints} name=${name} sequence=${task.status?.checkpointSequence} /></section>
    <section aria-label="children"><h2>Children</h2><${Children} task=${task} /></section>
    <section aria-label="history"><h2>History</h2><${History} tenant=${tenant} name=${name} version=${task.metadata?.resourceVersion} /></section>`;
}

/** @param {{task: any, now: number}} properties */
function Summary({ task, now }) {
  const { metadata = {}, spec = {}, status = {} } = task;
  const rows = [
    ["Runs", what(spec)],
    ["Type", inert(spec.taskType)],
    ["Created", `${clock(metadata.createTime)} (${age(metadata.createTime, now)} ago) by ${inert(metadata.creator?.id)}`],
    ["Took", took(status, now)],
    ["Runner", last(status.runner || status.lastRunner)],
    ["Attempt", status.attempt ? `${status.attempt}, ${status.retryCount || 0} retries, ${status.runnerLossCount || 0} lost runners` : ""],
    ["Exit code", status.exitCode ?? ""],
    ["Waits", word(status.pendingReason, "PENDING_REASON_").toLowerCase()],
    ["Next attempt", status.nextAttemptTime ? clock(status.nextAttemptTime) : ""],
    ["Requested", status.requestedAction ? `${word(status.requestedAction.action, "TASK_ACTION_").toLowerCase()} ${inert(status.requestedAction.reason)}` : ""],
    ["Error", status.error ? `${status.error.code || ""} ${inert(status.error.message)}` : ""],
    ["Priority", spec.priority ?? ""],
    ["Slot", inert(spec.slot)],
    ["Labels", inert(Object.entries(metadata.labels || {}).map(([key, value]) => `${key}=${value}`).join("  "))],
  ];
  return html`<dl>${rows.filter(([, value]) => value !== "").map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
    <${Progress} percent=${status.progress?.percent} message=${status.progress?.message} />`;
}

/** @param {{task: any, onDone: () => void}} properties */
function Actions({ task, onDone }) {
  const [asked, setAsked] = useState("");
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const phase = phaseOf(task);
  const now = (/** @type {string} */ action) => post(`v1/${task.name}:${action}`).then(onDone, setProblem);
  const ended = TERMINAL.has(phase);
  const buttons = [
    ["Cancel…", !ended, () => setAsked("cancel")],
    ["Pause", !ended && phase !== "PAUSED", () => now("pause")],
    ["Resume", phase === "PAUSED", () => now("resume")],
    ["Retry", ended && phase !== "SUCCEEDED", () => now("retry")],
    ["Edit…", phase === "PENDING" || phase === "PAUSED", () => setAsked("edit")],
    ["Clone…", true, () => { sessionStorage.setItem("clone", JSON.stringify(task)); go(link(["create"])); }],
    ["Delete…", ended, () => setAsked("delete")],
  ];
  const remove = () => call("DELETE", `v1/${task.name}`).then(() => go(link(["tasks"])));
  return html`<div class="toolbar">${buttons.filter(([, fits]) => fits).map(([label, , run]) => html`<button onClick=${run}>${label}</button>`)}</div>
    <${Problem} error=${problem} />
    ${asked === "cancel" ? html`<${Confirm} title="Cancel this task" action="Cancel the task" onConfirm=${() => post(`v1/${task.name}:cancel`, { reason: "console" }).then(onDone)} onClose=${() => setAsked("")}><p>A running program is asked to stop, and killed after its grace period.</p></${Confirm}>` : null}
    ${asked === "delete" ? html`<${Confirm} title="Delete this task" action="Delete the task" onConfirm=${remove} onClose=${() => setAsked("")}><p>Its output, runs and checkpoints go with it.</p></${Confirm}>` : null}
    ${asked === "edit" ? html`<${Edit} task=${task} onDone=${onDone} onClose=${() => setAsked("")} />` : null}`;
}

/** @param {{task: any, onDone: () => void, onClose: () => void}} properties */
function Edit({ task, onDone, onClose }) {
  const [priority, setPriority] = useState(String(task.spec?.priority ?? ""));
  const [labels, setLabels] = useState(Object.entries(task.metadata?.labels || {}).map((pair) => pair.join("=")).join("\n"));
  const save = () => {
    const changed = {
      name: task.name,
      metadata: { resourceVersion: task.metadata.resourceVersion, labels: Object.fromEntries(labels.split("\n").filter(Boolean).map((line) => [line.split("=")[0], line.split("=").slice(1).join("=")])) },
      spec: { priority: Number(priority) },
    };
    return call("PATCH", `v1/${task.name}`, changed, { updateMask: "metadata.labels,spec.priority" }).then(onDone);
  };
  return html`<${Confirm} title="Edit this task" action="Save" onConfirm=${save} onClose=${onClose}>
    <label>Priority (0 to 1000) <input type="number" min="0" max="1000" value=${priority} onInput=${(/** @type {any} */ event) => setPriority(event.target.value)} /></label>
    <label>Labels, one key=value a line <textarea rows="4" value=${labels} onInput=${(/** @type {any} */ event) => setLabels(event.target.value)}></textarea></label></${Confirm}>`;
}

/** @param {{name: string, version: string, now: number}} properties */
function Timeline({ name, version, now }) {
  const { value, error } = useRead(() => all(`v1/${name}/runs`, "runs"), [name, version]);
  const runs = value || [];
  const begin = Math.min(...runs.map((run) => Date.parse(run.scheduleTime || run.startTime)));
  const end = Math.max(now, ...runs.map((run) => (run.endTime ? Date.parse(run.endTime) : now)));
  const place = (/** @type {string} */ time) => `${((Date.parse(time) - begin) / Math.max(1, end - begin)) * 100}%`;
  return html`<${Problem} error=${error} /><${Table} rows=${runs} empty="It has not been claimed yet." columns=${[
    ["Run", (/** @type {any} */ run) => run.generation],
    ["Attempt", (/** @type {any} */ run) => run.attempt || ""],
    ["State", (/** @type {any} */ run) => word(run.state, "RUN_STATE_")],
    ["Exit", (/** @type {any} */ run) => run.exitCode ?? ""],
    ["Runner", (/** @type {any} */ run) => last(run.runner)],
    ["Took", (/** @type {any} */ run) => took(run, now)],
    ["Waited", (/** @type {any} */ run) => (run.startTime && run.scheduleTime ? duration(Date.parse(run.startTime) - Date.parse(run.scheduleTime)) : "")],
    ["When", (/** @type {any} */ run) => html`<span class="bar"><span style=${{ marginLeft: place(run.scheduleTime || run.startTime), width: `max(2px, calc(${place(run.endTime || new Date(now).toISOString())} - ${place(run.scheduleTime || run.startTime)}))` }}></span></span>`],
    ["Error", (/** @type {any} */ run) => (run.error ? `${run.error.code} ${inert(run.error.message)}` : "")],
  ]} />`;
}

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
  return html`<${Problem} error=${error} /><${Table} rows=${value || []} empty="None." columns=${[
    ["Sequence", (/** @type {any} */ row) => row.sequence],
    ["Size", (/** @type {any} */ row) => size(row.sizeBytes)],
    ["Stored", (/** @type {any} */ row) => clock(row.createTime)],
  ]} />`;
}

/** @param {{task: any}} properties */
function Children({ task }) {
  const tenant = task.name.split("/")[1];
  const { value } = useRead(() => get(`v1/tenants/${tenant}/tasks`, { filter: `metadata.parent_task = "${task.name}"`, pageSize: 50 }), [task.name]);
  const parent = task.metadata?.parentTask;
  return html`${parent ? html`<p>Created by <a href=${taskLink(parent)}>${inert(last(parent))}</a>.</p>` : null}
    <${Table} rows=${value?.tasks || []} empty="None." columns=${[
      ["Task", (/** @type {any} */ child) => html`<a href=${taskLink(child.name)}>${inert(last(child.name))}</a>`],
      ["Phase", (/** @type {any} */ child) => html`<${Phase} phase=${phaseOf(child)} />`],
    ]} />`;
}

/** @param {{tenant: string, name: string, version: string}} properties */
function History({ tenant, name, version }) {
  const { value, error } = useRead(() => get(`v1/tenants/${tenant}/auditEvents`, { filter: `resource = "${name}"`, pageSize: 100 }), [name, version]);
  return html`<${Problem} error=${error} /><${Table} rows=${value?.auditEvents || []} empty="Nothing yet." columns=${[
    ["Time", (/** @type {any} */ event) => clock(event.time)],
    ["Event", (/** @type {any} */ event) => event.eventType],
    ["By", (/** @type {any} */ event) => inert(`${word(event.actor?.type, "ACTOR_TYPE_").toLowerCase()} ${event.actor?.id || ""}`)],
    ["Details", (/** @type {any} */ event) => inert(JSON.stringify(event.details || {}))],
  ]} />`;
}

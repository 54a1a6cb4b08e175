// The list of tasks: live, filtered by the URL, with actions on everything that the filter finds.
import { call, get, post } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { age, inert, last, number, phaseOf, PHASES, tenantOf, TERMINAL, took, what } from "../format.js";
import { Confirm, Phase, Problem, Progress, Table, TaskLink, useNow } from "../parts.js";
import { setQuery } from "../router.js";
import { ROWS, useTasks } from "./task_list.js";

const FIELDS = ["id", "spec.task_type", "spec.slot", "spec.entity.type", "spec.entity.id", "spec.priority", "status.phase", "status.runner", "status.attempt", "status.retry_count", "status.error.code", "metadata.create_time", "metadata.update_time", "status.start_time", "status.end_time", "metadata.creator.id", "metadata.parent_task", "metadata.labels."];
const COLUMNS = /** @type {Record<string, (task: any, now: number) => any>} */ ({
  Phase: (task) => html`<${Phase} phase=${phaseOf(task)} />`,
  Tenant: (task) => tenantOf(task.name),
  Type: (task) => inert(task.spec?.taskType),
  What: (task) => what(task.spec),
  Age: (task, now) => age(task.metadata?.createTime, now),
  Took: (task, now) => took(task.status, now),
  Runner: (task) => last(task.status?.runner || task.status?.lastRunner),
  Progress: (task) => html`<${Progress} percent=${task.status?.progress?.percent} message=${task.status?.progress?.message} />`,
  Error: (task) => inert(task.status?.error?.code),
  Labels: (task) => inert(Object.entries(task.metadata?.labels || {}).map(([key, value]) => `${key}=${value}`).join(" ")),
});
const SHOWN = ["Phase", "What", "Type", "Age", "Took", "Runner", "Progress", "Error"];

/** @param {{me: import("../main.js").Me, route: import("../router.js").Route}} properties */
export function Tasks({ me, route }) {
  const filter = route.query.get("filter") || "";
  const columns = (route.query.get("columns") || SHOWN.join(",")).split(",").filter((name) => COLUMNS[name]);
  const now = useNow();
  const list = useTasks(me.parent, filter);
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  const tenant = me.admin ? route.query.get("tenant") || "" : me.tenant;
  return html`<h1>Tasks</h1>
    <${FilterBar} filter=${filter} columns=${columns} />
    <${Problem} error=${list.error} />
    <div class="toolbar"><span role="status">${list.tasks.length >= ROWS ? `The newest ${ROWS}` : `${list.tasks.length} tasks`}${list.pending ? html`, <button onClick=${list.reload}>${number(list.pending)} changes: show</button>` : ""}</span>
      ${me.writes ? ["cancel", "retry", "delete"].map((action) => html`<button onClick=${() => setAsked(action)}>${action[0].toUpperCase() + action.slice(1)} all…</button>`) : null}
      <button onClick=${() => download(list.tasks)}>Export</button></div>
    <${Table} rows=${list.tasks} empty=${filter ? "No task matches the filter." : "No tasks yet. Press n to create one."} columns=${[
      ["Task", (/** @type {any} */ task) => html`<${TaskLink} task=${task} />`],
      ...columns.map((name) => [name, (/** @type {any} */ task) => COLUMNS[name](task, now)]),
    ]} />
    ${list.next ? html`<button onClick=${list.more}>Older tasks</button>` : null}
    ${asked ? html`<${Bulk} action=${asked} filter=${filter} tenant=${tenant || me.tenant} onClose=${() => setAsked(null)} onDone=${list.reload} />` : null}`;
}

/** @param {{filter: string, columns: string[]}} properties */
function FilterBar({ filter, columns }) {
  const [text, setText] = useState(filter);
  const [views, setViews] = useState(savedViews());
  useEffect(() => setText(filter), [filter]);
  const submit = (/** @type {Event} */ event) => { event.preventDefault(); setQuery({ filter: text.trim() }); };
  const save = () => {
    const name = prompt("Name of this view");
    if (name) { localStorage.setItem("views", JSON.stringify({ ...views, [name]: location.hash })); setViews(savedViews()); }
  };
  const toggle = (/** @type {string} */ column) =>
    setQuery({ columns: (columns.includes(column) ? columns.filter((each) => each !== column) : [...columns, column]).join(",") });
  return html`<form class="filter" onSubmit=${submit} role="search">
      <label for="filter">Filter</label><input id="filter" list="fields" value=${text} placeholder='status.phase = FAILED AND metadata.labels.team = "docs"' onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <datalist id="fields">${completions(text).map((each) => html`<option value=${each} />`)}</datalist>
      <button>Apply</button>${filter ? html`<button type="button" onClick=${() => setQuery({ filter: "" })}>Clear</button>` : null}
      <button type="button" onClick=${save}>Save view</button></form>
    <div class="chips">${["LIVE", ...PHASES].map((phase) => html`<button class="chip" aria-pressed=${filter.includes(`status.phase = ${phase}`) ? "true" : "false"} onClick=${() => setQuery({ filter: withPhase(filter, phase) })}>${phase}</button>`)}
      ${Object.entries(views).map(([name, target]) => html`<a class="chip" href=${target}>${inert(name)}</a>`)}
      <details class="columns"><summary>Columns</summary>${Object.keys(COLUMNS).map((column) => html`<label><input type="checkbox" checked=${columns.includes(column)} onChange=${() => toggle(column)} /> ${column}</label>`)}</details></div>`;
}

/** @returns {Record<string, string>} */
const savedViews = () => JSON.parse(localStorage.getItem("views") || "{}");

/** What could stand at the end of a filter. @param {string} text */
export function completions(text) {
  const begun = /^(.*?)([\w.]*)$/s.exec(text);
  if (!begun) return [];
  return FIELDS.filter((field) => field.startsWith(begun[2])).map((field) => begun[1] + field);
}

/** The filter with another phase, or without it if it has it. @param {string} filter @param {string} phase */
export function withPhase(filter, phase) {
  const rest = filter.split(" AND ").filter((term) => term && !term.startsWith("status.phase = ")).join(" AND ");
  if (filter.includes(`status.phase = ${phase}`)) return rest;
  return rest ? `${rest} AND status.phase = ${phase}` : `status.phase = ${phase}`;
}

/** @param {{action: string, filter: string, tenant: string, onClose: () => void, onDone: () => void}} properties */
function Bulk({ action, filter, tenant, onClose, onDone }) {
  const [count, setCount] = useState(/** @type {any} */ (undefined));
  const [done, setDone] = useState(0);
  const suitable = action === "cancel" ? "status.phase = LIVE" : action === "retry" ? "(status.phase = FAILED OR status.phase = TIMED_OUT OR status.phase = CANCELLED OR status.phase = EXHAUSTED)" : "status.phase = TERMINAL";
  const whole = filter ? `(${filter}) AND ${suitable}` : suitable;
  useEffect(() => {
    get(`v1/tenants/${tenant}/tasks`, { filter: whole, pageSize: 1, countTotal: true, view: "TASK_VIEW_NAME" }).then((page) => setCount(Number(page.totalSize || 0)), (error) => setCount(error));
  }, []);
  const run = async () => {
    if (action === "delete") return removeAll(tenant, whole, setDone).then(onDone);
    for (let more = true, total = 0; more; ) {
      const answer = await post(`v1/tenants/${tenant}/tasks:batch${action === "cancel" ? "Cancel" : "Retry"}`, { filter: whole });
      total += (answer.results || []).length;
      setDone(total);
      more = Boolean(answer.more);
    }
    onDone();
  };
  const counted = typeof count === "number";
  return html`<${Confirm} title=${`${action[0].toUpperCase() + action.slice(1)} tasks of ${tenant}`} action=${counted ? `${action} ${number(count)} tasks` : action} onConfirm=${run} onClose=${onClose}>
    <p>${counted ? html`<b>${number(count)}</b>${count >= 100000 ? " or more" : ""} tasks match <code>${inert(whole)}</code>.` : count ? html`<${Problem} error=${count} />` : "Counting…"}</p>
    ${done ? html`<p role="status">${number(done)} done.</p>` : null}</${Confirm}>`;
}

/** @param {string} tenant @param {string} filter @param {(count: number) => void} report */
async function removeAll(tenant, filter, report) {
  for (let total = 0; ; ) {
    const page = await get(`v1/tenants/${tenant}/tasks`, { filter, pageSize: 100, view: "TASK_VIEW_NAME" });
    const tasks = (page.tasks || []).filter((/** @type {any} */ task) => TERMINAL.has(phaseOf(task)));
    if (!tasks.length) return;
    await Promise.all(tasks.map((/** @type {any} */ task) => call("DELETE", `v1/${task.name}`)));
    report((total += tasks.length));
  }
}

/** @param {any[]} tasks */
function download(tasks) {
  const file = new Blob([JSON.stringify(tasks, null, 1)], { type: "application/json" });
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(file);
  anchor.download = "tasks.json";
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}

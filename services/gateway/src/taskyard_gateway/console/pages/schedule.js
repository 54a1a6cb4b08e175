// One schedule: its next times, its tasks, what happened at each time, and the buttons to steer it.
import { call, get, post } from "../api.js";
import { html, useState } from "../dom.js";
import { age, clock, inert, last, number, tenantOf, what, word } from "../format.js";
import { Confirm, Hidden, Problem, Table, TaskLink, useNow, useRead } from "../parts.js";
import { go, link } from "../router.js";
import { Instants, ScheduleForm } from "./schedule_form.js";
import { State, times, until } from "./schedules.js";

/** @param {{me: import("../main.js").Me, tenant: string, id: string}} properties */
export function SchedulePage({ me, tenant, id }) {
  const name = `tenants/${tenant}/schedules/${id}`;
  const { value, error, reload } = useRead(() => get(`v1/${name}`), [name], 5000);
  const now = useNow();
  const schedule = value?.schedule;
  if (!schedule) return html`<h1>${inert(id)}</h1>${error ? html`<${Problem} error=${error} />` : html`<p class="loading">Loading…</p>`}`;
  const version = `${schedule.resourceVersion} ${schedule.nextScheduledTime || ""}`;
  return html`<h1>${inert(id)} <${State} schedule=${schedule} /></h1><${Problem} error=${error} />
    ${me.writes ? html`<${Actions} me=${me} schedule=${schedule} onDone=${reload} />` : null}
    <${Summary} schedule=${schedule} now=${now} />
    <section aria-label="next times"><h2>Next times</h2>${schedule.paused ? html`<p class="note">While it is paused, none of these creates a task.</p>` : null}
      <${Instants} tenant=${tenant} subject=${{ name }} version=${version} /></section>
    <section aria-label="template"><h2>The task it creates</h2><p><${Hidden} label="the whole template" text=${() => JSON.stringify(schedule.template || {}, null, 2)} /></p></section>
    <section aria-label="events"><h2>What happened</h2><${Events} name=${name} version=${version} /></section>`;
}

/** @param {{schedule: any, now: number}} properties */
function Summary({ schedule, now }) {
  const tasks = link(["tasks"], { filter: `id = "${last(schedule.name)}.*"`, since: "all", tenant: tenantOf(schedule.name) });
  const rows = [
    ["When", times(schedule)],
    ["Next", schedule.nextFireTime ? `${clock(schedule.nextFireTime)} (${until(schedule.nextFireTime, now)})` : ""],
    ["Runs", what(schedule.template?.spec)],
    ["Last task", schedule.lastTask ? html`<${TaskLink} task=${{ name: schedule.lastTask }} /> (${age(schedule.lastScheduledTime, now)} ago), <a href=${tasks}>all of them</a>` : ""],
    ["So far", `${number(schedule.firedCount)} fired, ${number(schedule.skippedCount)} skipped, ${number(schedule.missedCount)} missed`],
    ["Left", schedule.remainingRuns === undefined ? "" : number(schedule.remainingRuns)],
    ["Overlap", word(schedule.overlap, "SCHEDULE_OVERLAP_").toLowerCase().replace("_", " ")],
    ["Missed", word(schedule.missed, "MISSED_POLICY_").toLowerCase()],
    ["On failure", schedule.pauseOnFailure ? "pauses" : ""],
    ["About", inert(schedule.description)],
    ["Changed", clock(schedule.updateTime)],
  ];
  return html`<dl>${rows.filter(([, value]) => value !== "").map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {{me: import("../main.js").Me, schedule: any, onDone: () => void}} properties */
function Actions({ me, schedule, onDone }) {
  const [asked, setAsked] = useState("");
  const [note, setNote] = useState("");
  const [message, setMessage] = useState("");
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const path = `v1/${schedule.name}`;
  const after = () => { setProblem(null); setMessage(""); onDone(); };
  const run = () => post(`${path}:run`, { requestId: crypto.randomUUID() }).then((answer) => {
    after();
    if (answer.outcome === "CREATE_OUTCOME_DROPPED") setMessage(`No task was created: ${last(answer.task?.name)} is still live, and the schedule skips what would overlap.`);
    else go(link(["tasks", tenantOf(answer.task.name), last(answer.task.name)]));
  }, setProblem);
  const close = () => setAsked("");
  return html`<div class="toolbar"><button onClick=${run}>Run now</button>
      ${schedule.paused ? html`<button onClick=${() => post(`${path}:resume`).then(after, setProblem)}>Resume</button>` : html`<button onClick=${() => { setNote(""); setAsked("pause"); }}>Pause…</button>`}
      <button onClick=${() => setAsked("edit")}>Edit…</button><button onClick=${() => setAsked("delete")}>Delete…</button></div>
    <${Problem} error=${problem} />${message ? html`<p class="note" role="status">${inert(message)}</p>` : null}
    ${asked === "pause" ? html`<${Confirm} title="Pause this schedule" action="Pause" onConfirm=${() => post(`${path}:pause`, { note }).then(after)} onClose=${close}>
      <p>Its live tasks go on; what falls into the pause is not caught up.</p><label>Why <input value=${note} maxlength="1024" onInput=${(/** @type {any} */ event) => setNote(event.target.value)} /></label></${Confirm}>` : null}
    ${asked === "delete" ? html`<${Confirm} title="Delete this schedule" action="Delete the schedule" onConfirm=${() => call("DELETE", path).then(() => go(link(["schedules"])))} onClose=${close}><p>The tasks that it created stay.</p></${Confirm}>` : null}
    ${asked === "edit" ? html`<${ScheduleForm} me=${me} schedule=${schedule} onDone=${after} onClose=${close} />` : null}`;
}

/** @param {{name: string, version: string}} properties */
function Events({ name, version }) {
  const { value, error } = useRead(() => get(`v1/tenants/${tenantOf(name)}/auditEvents`, { filter: `resource = "${name}"`, pageSize: 50 }), [name, version]);
  return html`<${Problem} error=${error} /><${Table} rows=${value?.auditEvents || []} empty=${value ? "Nothing yet." : "Reading…"} columns=${[
    ["Time", (/** @type {any} */ event) => clock(event.time)],
    ["Event", (/** @type {any} */ event) => event.eventType],
    ["For", (/** @type {any} */ event) => clock(event.details?.scheduled_time)],
    ["Task", (/** @type {any} */ event) => taskOf(event, name)],
    ["By", (/** @type {any} */ event) => inert(`${word(event.actor?.type, "ACTOR_TYPE_").toLowerCase()} ${event.actor?.id || ""}`)],
    ["Details", (/** @type {any} */ event) => inert(rest(event.details))],
  ]} />`;
}

/** The task that an event names. @param {any} event @param {string} name */
function taskOf(event, name) {
  const found = event.details?.task || event.details?.blocking_task;
  if (!found) return "";
  return html`<${TaskLink} task=${{ name: String(found).includes("/") ? found : `tenants/${tenantOf(name)}/tasks/${found}` }} />`;
}

/** @param {any} details */
function rest(details) {
  const { scheduled_time: _time, task: _task, blocking_task: _blocking, ...others } = details || {};
  return Object.keys(others).length ? JSON.stringify(others) : "";
}

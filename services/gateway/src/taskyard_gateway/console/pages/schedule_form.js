// A new or changed schedule: its times with what they amount to, and the task that it creates.
import { call, post } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { clock, inert, last, tenantOf, word } from "../format.js";
import { Confirm, Problem, Table, useRead } from "../parts.js";
import { words } from "./create.js";

const OVERLAPS = { SKIP: "skip this time", QUEUE: "wait for its turn", QUEUE_LATEST: "wait, only the newest", REPLACE: "cancel the earlier task", ALLOW: "run beside it" };
const MISSED = { LATEST: "run the newest", ALL: "run each", NONE: "run none" };
/** @type {Record<string, string>} */
const NOTES = {
  AFTER_GAP: "right after the gap of a daylight-saving change",
  FIRST_OF_TWO: "the first of two: the clock is set back",
  SECOND_OF_TWO: "the second of two: the clock is set back",
};
const TYPED_MS = 300;

/** The next times of a schedule, stored ({name}) or not ({schedule}). @param {{tenant: string, subject: any, version: string, count?: number}} properties */
export function Instants({ tenant, subject, version, count = 10 }) {
  const { value, error } = useRead(() => post(`v1/tenants/${tenant}/schedules:preview`, { ...subject, count }), [JSON.stringify(subject), version]);
  if (error) return html`<${Problem} error=${error} />`;
  return html`<${Table} rows=${value?.instants || []} key=${(/** @type {any} */ row) => row.scheduledTime} empty=${value ? "It has ended: no times are left." : "Reading…"} columns=${[
    ["In its zone", (/** @type {any} */ row) => inert(row.localTime)],
    ["Here", (/** @type {any} */ row) => clock(row.fireTime)],
    ["", (/** @type {any} */ row) => NOTES[word(row.daylightSavingNote, "DAYLIGHT_SAVING_NOTE_")] || ""],
  ]} />`;
}

/** @param {{me: import("../main.js").Me, schedule?: any, onDone: () => void, onClose: () => void}} properties */
export function ScheduleForm({ me, schedule, onDone, onClose }) {
  const [form, setForm] = useState(/** @type {any} */ (schedule ? formOf(schedule) : fresh(me)));
  const field = (/** @type {string} */ name) => ({ value: form[name], onInput: (/** @type {any} */ event) => setForm((/** @type {any} */ before) => ({ ...before, [name]: event.target.value })) });
  const choice = (/** @type {string} */ label, /** @type {string} */ name, /** @type {Record<string, string>} */ values) =>
    html`<label>${label} <select ...${field(name)}>${Object.entries(values).map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>`;
  const save = async () => {
    const made = bodyOf(form);
    if (schedule) await call("PATCH", `v1/${schedule.name}`, { name: schedule.name, resourceVersion: schedule.resourceVersion, ...made }, { updateMask: FIELDS.join(",") });
    else await call("POST", `v1/tenants/${form.tenant}/schedules`, made, { scheduleId: form.id, requestId: form.request });
    onDone();
  };
  return html`<${Confirm} title=${schedule ? `Edit ${last(schedule.name)}` : "New schedule"} action=${schedule ? "Save" : "Create the schedule"} onConfirm=${save} onClose=${onClose}>
    <div class="fields">${schedule ? null : html`${me.admin ? html`<label>Tenant <input ...${field("tenant")} /></label>` : null}<label>Id <input ...${field("id")} maxlength="55" placeholder="nightly-report" /></label>`}
    <label>Cron lines, one a line <textarea rows="2" ...${field("cron")} placeholder="30 2 * * *"></textarea></label>
    <label>And every … seconds <input type="number" min="1" ...${field("every")} /></label>
    <label>Time zone <input ...${field("timeZone")} placeholder="UTC" /></label>
    <${TypedTimes} form=${form} />
    <label>Command line <input ...${field("program")} placeholder="echo hello" disabled=${Boolean(form.template.trim())} /></label>
    <details open=${Boolean(form.template.trim())}><summary>Or the whole task, as JSON</summary><textarea rows="8" aria-label="task as JSON" ...${field("template")} placeholder='{"spec": {"taskType": "report", "payload": {"json": {"city": "Oslo"}}}}'></textarea></details>
    ${choice("While an earlier task is live", "overlap", OVERLAPS)}${choice("Times that were missed in an outage", "missed", MISSED)}
    <label class="check"><input type="checkbox" checked=${form.pauseOnFailure} onChange=${(/** @type {any} */ event) => setForm((/** @type {any} */ before) => ({ ...before, pauseOnFailure: event.target.checked }))} /> Pause it when a task of it fails</label>
    <label>About <input ...${field("description")} maxlength="1024" /></label></div></${Confirm}>`;
}

/** What the typed times amount to, a moment after the last key. @param {{form: any}} properties */
function TypedTimes({ form }) {
  const { cron, every, timeZone } = timesOf(form);
  const text = JSON.stringify({ cron, every, timeZone });
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const subject = JSON.parse(typed);
  if (!subject.cron.length && !subject.every) return html`<p class="empty">Its next times appear here.</p>`;
  return html`<section aria-label="next times"><${Instants} tenant=${form.tenant} subject=${{ schedule: subject }} version="" count=${3} /></section>`;
}

const FIELDS = ["description", "template", "cron", "every", "timeZone", "overlap", "missed", "pauseOnFailure"];

/** @param {import("../main.js").Me} me */
const fresh = (me) => ({ tenant: me.tenant, id: "", cron: "", every: "", timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC", program: "echo hello", template: "", overlap: "SKIP", missed: "LATEST", pauseOnFailure: false, description: "", request: crypto.randomUUID() });

/** @param {any} schedule */
function formOf(schedule) {
  const { metadata, spec = {}, ...other } = schedule.template || {};
  const { execution, ...more } = spec;
  const { program = "", args = [], ...rest } = execution?.command || {};
  // What a command line cannot express is edited as JSON.
  const plain = program && !Object.keys({ ...metadata, ...other, ...more, ...rest }).length;
  return {
    tenant: tenantOf(schedule.name), id: last(schedule.name), cron: (schedule.cron || []).join("\n"), every: schedule.every ? String(parseFloat(schedule.every)) : "", timeZone: schedule.timeZone || "",
    program: plain ? [program, ...args].map((each) => (/[\s"']/.test(each) || !each ? JSON.stringify(each) : each)).join(" ") : "",
    template: plain ? "" : JSON.stringify(schedule.template || {}, null, 1),
    overlap: word(schedule.overlap, "SCHEDULE_OVERLAP_") || "SKIP", missed: word(schedule.missed, "MISSED_POLICY_") || "LATEST", pauseOnFailure: Boolean(schedule.pauseOnFailure), description: schedule.description || "",
  };
}

/** @param {any} form */
const timesOf = (form) => ({
  cron: form.cron.split("\n").map((/** @type {string} */ line) => line.trim()).filter(Boolean),
  ...(form.every ? { every: `${form.every}s` } : {}),
  timeZone: form.timeZone.trim(),
});

/** @param {any} form */
function bodyOf(form) {
  const [program, ...args] = words(form.program);
  const template = form.template.trim() ? JSON.parse(form.template) : { spec: { execution: { command: { program, args } } } };
  return { ...timesOf(form), template, overlap: `SCHEDULE_OVERLAP_${form.overlap}`, missed: `MISSED_POLICY_${form.missed}`, pauseOnFailure: form.pauseOnFailure, description: form.description };
}

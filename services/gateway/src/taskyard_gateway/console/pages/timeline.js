// What happened to a task: its runs as bars, and between them retries, back-offs, moves and refused writers.
import { all, get } from "../api.js";
import { html } from "../dom.js";
import { clock, duration, facts, inert, last, took, word } from "../format.js";
import { Problem, Table, useRead } from "../parts.js";

/** @type {Record<string, (details: any) => string>} */
const SENTENCES = {
  "task.retry_scheduled": (details) => `The next attempt${details.next_attempt_time ? ` is due ${clock(details.next_attempt_time)}` : " follows"} (back-off).`,
  "task.retried": () => "Retried by hand.",
  "task.released": (details) => `Given back${details.reason ? `: ${details.reason}` : ""}.`,
  "task.redistributed": () => "Its runner was lost; it goes to another one.",
  "task.reconnected": () => "Its runner is back with it.",
  "task.paused": () => "Paused.",
  "task.resumed": () => "Resumed.",
  "task.reset": (details) => `Taken from its runner and queued again${details.reason ? `: ${details.reason}` : ""}.`,
  "task.reset_requested": (details) => `A reset was requested${details.reason ? `: ${details.reason}` : ""}.`,
  "task.waiting": (details) =>
    `Waits for ${details.live_children} of its children${details.first ? `, such as ${details.first}` : ""}; it starts again when they have ended.`,
  "task.pause_requested": () => "A pause was requested.",
  "task.cancel_requested": (details) => `Its cancellation was requested${details.reason ? `: ${details.reason}` : ""}.`,
  "task.report_rejected": (details) => `A stale writer was refused: ${details.reason || ""} ${details.message || ""}${/[.!?]$/.test(details.message || "") ? "" : "."} What it wrote does not count.`,
};

/** The newest audit events of a task or group, read again when `changes` differs. @param {string} name @param {number | string} changes */
export function useAudit(name, changes) {
  return useRead(() => get(`v1/tenants/${name.split("/")[1]}/auditEvents`, { filter: `resource = "${name}"`, pageSize: 200 }), [name, changes]);
}

/** @param {{name: string, changes: number, now: number, audit: {value: any, error: any}}} properties */
export function Timeline({ name, changes, now, audit }) {
  const runs = useRead(() => all(`v1/${name}/runs`, "runs", {}, 500), [name, changes]);
  const events = (audit.value?.auditEvents || []).filter((/** @type {any} */ event) => SENTENCES[event.eventType]);
  const rows = [
    ...(runs.value || []).map((run) => ({ key: `run ${run.generation}`, time: run.scheduleTime || run.startTime, run })),
    ...events.map((/** @type {any} */ event) => ({ key: event.name, time: event.time, event })),
  ].sort((left, right) => Date.parse(left.time) - Date.parse(right.time));
  const begin = Math.min(...rows.map((row) => Date.parse(row.time)));
  const end = Math.max(begin + 1, ...(runs.value || []).map((run) => (run.endTime ? Date.parse(run.endTime) : now)), ...events.map((/** @type {any} */ event) => Date.parse(event.time)));
  return html`<${Problem} error=${runs.error || audit.error} /><${Table} rows=${runs.value && rows} error=${runs.error} empty="It has not been claimed yet." key=${(/** @type {any} */ row) => row.key} columns=${[
    ["Time", (/** @type {any} */ row) => clock(row.time)],
    ["Run", (/** @type {any} */ row) => row.run?.generation || row.event?.details?.report_generation || ""],
    ["Attempt", (/** @type {any} */ row) => row.run?.attempt || ""],
    ["What", (/** @type {any} */ row) => (row.run ? outcome(row.run) : html`<span class=${row.event.eventType === "task.report_rejected" ? "warn" : ""}>${inert(SENTENCES[row.event.eventType](row.event.details || {}))}</span>`)],
    ["Runner", (/** @type {any} */ row) => inert(last(row.run?.runner || row.event?.details?.runner))],
    ["Took", (/** @type {any} */ row) => (row.run ? took(row.run, now) : "")],
    ["Waited", (/** @type {any} */ row) => (row.run?.startTime && row.run.scheduleTime ? duration(Date.parse(row.run.startTime) - Date.parse(row.run.scheduleTime)) : "")],
    ["When", (/** @type {any} */ row) => html`<${Bar} from=${Date.parse(row.time)} to=${row.run ? (row.run.endTime ? Date.parse(row.run.endTime) : now) : Date.parse(row.time)} begin=${begin} end=${end} />`],
  ]} />`;
}

/** @param {any} run */
function outcome(run) {
  const state = word(run.state, "RUN_STATE_");
  const error = run.error ? ` ${run.error.code} ${run.error.message || ""}` : "";
  return html`<span class=${`phase phase-${state.toLowerCase()}`}>${state}</span>${run.exitCode === undefined ? "" : ` exit ${run.exitCode}`}${inert(error)}`;
}

/** Where a run lies in the life of its task. @param {{from: number, to: number, begin: number, end: number}} properties */
const Bar = ({ from, to, begin, end }) => {
  const place = (/** @type {number} */ time) => (Math.min(Math.max(0, time - begin), end - begin) / (end - begin)) * 160;
  return html`<svg class="bar" viewBox="0 0 160 12" role="img" aria-label=${`after ${duration(from - begin)}, for ${duration(to - from)}`}><rect x=${Math.min(place(from), 157)} y="1" height="10" width=${Math.max(3, place(to) - place(from))} rx="2" /></svg>`;
};

/** @param {{audit: {value: any, error: any}}} properties */
export function History({ audit: { value, error } }) {
  return html`<${Problem} error=${error} /><${Table} rows=${value && (value.auditEvents || [])} error=${error} empty="Nothing yet." columns=${[
    ["Time", (/** @type {any} */ event) => clock(event.time)],
    ["Event", (/** @type {any} */ event) => event.eventType],
    ["By", (/** @type {any} */ event) => inert(`${word(event.actor?.type, "ACTOR_TYPE_").toLowerCase()} ${event.actor?.id || ""}`)],
    ["Details", (/** @type {any} */ event) => facts(event.details)],
  ]} />`;
}

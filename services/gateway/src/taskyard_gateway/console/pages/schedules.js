// Schedules: when each creates its next task, and what became of the last ones.
import { all } from "../api.js";
import { html, useState } from "../dom.js";
import { age, clock, duration, inert, last, number, tenantOf, what } from "../format.js";
import { Problem, Table, TaskLink, useNow, useRead } from "../parts.js";
import { link } from "../router.js";
import { ScheduleForm } from "./schedule_form.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Schedules({ me }) {
  const { value, error, reload } = useRead(() => all(`v1/${me.parent}/schedules`, "schedules"), [me.parent], 5000);
  const now = useNow();
  const [making, setMaking] = useState(false);
  return html`<h1>Schedules</h1><${Problem} error=${error} />
    ${me.writes ? html`<div class="toolbar"><button class="primary" onClick=${() => setMaking(true)}>New schedule…</button></div>` : null}
    ${value ? html`<${Table} rows=${value} empty="No schedule yet. A schedule creates a task at each of its times." columns=${[
      ["Schedule", (/** @type {any} */ schedule) => html`<a href=${scheduleLink(schedule.name)}>${inert(last(schedule.name))}</a>`],
      ...(me.admin ? [["Tenant", (/** @type {any} */ schedule) => tenantOf(schedule.name)]] : []),
      ["State", (/** @type {any} */ schedule) => html`<${State} schedule=${schedule} />`],
      ["When", (/** @type {any} */ schedule) => times(schedule)],
      ["Next", (/** @type {any} */ schedule) => (schedule.nextFireTime ? html`${clock(schedule.nextFireTime)} <small>${until(schedule.nextFireTime, now)}</small>` : "")],
      ["Runs", (/** @type {any} */ schedule) => what(schedule.template?.spec)],
      ["Last task", (/** @type {any} */ schedule) => (schedule.lastTask ? html`<${TaskLink} task=${{ name: schedule.lastTask }} /> <small>${age(schedule.lastScheduledTime, now)} ago</small>` : "")],
      ["Fired", (/** @type {any} */ schedule) => number(schedule.firedCount)],
      ["About", (/** @type {any} */ schedule) => inert(schedule.description)],
    ]} />` : error ? null : html`<p class="loading">Loading…</p>`}
    ${making ? html`<${ScheduleForm} me=${me} onDone=${reload} onClose=${() => setMaking(false)} />` : null}`;
}

/** @param {string} name tenants/{tenant}/schedules/{schedule} */
export const scheduleLink = (name) => link(["schedules", tenantOf(name), last(name)]);

/** @param {{schedule: any}} properties */
export const State = ({ schedule }) => {
  const state = schedule.paused ? "paused" : schedule.nextFireTime ? "active" : "ended";
  return html`<span class=${`phase state-${state}`}>${state}</span>${schedule.paused && schedule.pauseNote ? html` <small>${inert(schedule.pauseNote)}</small>` : null}`;
};

/** When a schedule runs, in one line. @param {any} schedule */
export function times(schedule) {
  const parts = [...(schedule.cron || []).map(inert)];
  if (schedule.every) parts.push(`every ${duration(parseFloat(schedule.every) * 1000)}${parseFloat(schedule.offset || "0") ? ` + ${duration(parseFloat(schedule.offset) * 1000)}` : ""}`);
  return `${parts.join(", ")} (${inert(schedule.timeZone || "UTC")})`;
}

/** @param {string} time @param {number} now */
export const until = (time, now) => (Date.parse(time) > now ? `in ${duration(Date.parse(time) - now)}` : "now");

// How the yard is doing: counts, throughput, runners, shares, and what the doctor says.
import { get, post, postInBackground } from "../api.js";
import { html, useState } from "../dom.js";
import { age, duration, fromDuration, inert, number, phaseOf, PHASES, took, what, word } from "../format.js";
import { Phase, Problem, Sparkline, Table, TaskLink, taskLink, useNow, useRead } from "../parts.js";
import { go, link } from "../router.js";
import { useTasks } from "./task_list.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Overview({ me }) {
  const stats = useRead(async () => ({ ...(await get(`v1/${me.parent}/tasks:stats`)), readTime: Date.now() }), [me.parent], 5000);
  const series = useRead(() => get(`v1/${me.parent}/tasks:series`), [me.parent], 10_000);
  const status = useRead(() => (me.admin ? get("v1/systemStatus") : Promise.resolve(null)), [me.admin], 5000);
  const group = stats.value?.groups?.[0] || {};
  const counts = new Map((group.phases || []).map((/** @type {any} */ each) => [word(each.phase, "TASK_PHASE_"), each.count]));
  return html`<h1>Overview</h1><${Problem} error=${stats.error || series.error || status.error} />
    <${Health} status=${status.value} />
    <section aria-label="tasks of the last 24 hours"><h2>Tasks of the last 24 hours</h2><div class="tiles">${PHASES.map((phase) => html`
      <a class=${counts.get(phase) ? "tile" : "tile none"} href=${link(["tasks"], { filter: `status.phase = ${phase}` })}><b>${number(counts.get(phase))}</b><span class=${`phase-${phase.toLowerCase()}`}>${phase}</span></a>`)}</div>
      <p>${spread("Waited", group.queueDuration)}${spread("Ran", group.runDuration)}
        ${group.oldestPendingAge ? html`<${Oldest} age=${group.oldestPendingAge} readTime=${stats.value?.readTime} />` : "Nothing waits."}</p></section>
    <${Hour} points=${series.value?.points || []} />
    <${Newest} me=${me} />
    ${me.admin ? html`<${Shares} /><${DoctorSummary} begin=${settled(stats) && settled(series) && settled(status)} />` : null}`;
}

/**
 * How long the oldest task has waited, with a link to it: what waits and was created about then. An answer is some
 * seconds old when it is read, never ahead.
 * @param {{age: string, readTime: number}} properties
 */
function Oldest({ age, readTime }) {
  const created = readTime - fromDuration(age);
  const time = (/** @type {number} */ offset) => new Date(created + offset).toISOString();
  const filter = `status.phase = PENDING AND metadata.create_time >= "${time(-6000)}" AND metadata.create_time <= "${time(1000)}"`;
  return html`<a href=${link(["tasks"], { filter, since: "all" })}>The oldest</a> waits for ${duration(fromDuration(age))}.`;
}

/** @param {{status: any}} properties */
function Health({ status }) {
  if (!status) return null;
  const runners = status.runners || {};
  return html`<section aria-label="health"><p class=${status.operational ? "good" : "problem"} role="status">
      ${status.operational ? "✓ Work proceeds." : html`✗ Work cannot proceed: ${inert((status.problems || []).join(" "))}`}</p>
    <p><a href=${link(["runners"])}>Runners</a>: ${number(runners.healthyCount)} healthy, ${number(runners.drainingCount)} draining, ${number(runners.deadCount)} dead.${" "}
      ${number(runners.runningCount)} of ${number(runners.capacity)} places in use. Waiting: ${number(status.queue?.waitingCount)}.</p></section>`;
}

/** @param {{points: any[]}} properties */
function Hour({ points }) {
  points = everyMinute(points, Date.now());
  const charts = [
    ["created", "Created per minute", points.map((point) => Number(point.createdCount || 0))],
    ["ended", "Ended per minute", points.map((point) => Number(point.succeededCount || 0) + Number(point.failedCount || 0))],
    ["waited", "Mean wait (s)", points.map((point) => fromDuration(point.meanWait || "0s") / 1000)],
  ];
  const round = (/** @type {number} */ value) => number(Math.round(value * 10) / 10);
  return html`<section aria-label="last hour"><h2>Last hour</h2><div class="charts">${charts.map(([name, label, values]) => html`
    <figure data-chart=${name}><figcaption>${label}: <b>${round(/** @type {number[]} */ (values)[59])}</b> <small>at most ${round(Math.max(.../** @type {number[]} */ (values)))}</small></figcaption>
      <${Sparkline} points=${values} label=${label} /><div class="axis" aria-hidden="true"><span>60 min ago</span><span>now</span></div></figure>`)}</div></section>`;
}

/** The last hour, minute by minute: those without a point are empty. @param {any[]} points @param {number} now */
export function everyMinute(points, now) {
  const found = new Map(points.map((point) => [Math.floor(Date.parse(point.time) / 60_000), point]));
  const last = Math.floor(now / 60_000);
  return Array.from({ length: 60 }, (_, index) => found.get(last - 59 + index) || {});
}

/** How long tasks took, if any has ended. @param {string} verb @param {any} durations */
const spread = (verb, durations) => (durations?.p50 ? `${verb} ${duration(fromDuration(durations.p50))} (p95 ${duration(fromDuration(durations.p95))}). ` : "");

const NEWEST = 8;
// Prints a line a second, so that a newcomer sees a task run.
const EXAMPLE = 'for n in $(seq 1 60); do echo "step $n of 60"; sleep 1; done';

/** The newest tasks, live; where there are none, a way to the first one. @param {{me: import("../main.js").Me}} properties */
function Newest({ me }) {
  const list = useTasks(me.parent, "", NEWEST);
  const now = useNow();
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const example = () => post(`v1/tenants/${me.tenant}/tasks?taskId=example-${crypto.randomUUID().slice(0, 8)}`, { metadata: { labels: { example: "yes" } }, spec: { execution: { command: { program: "sh", args: ["-c", EXAMPLE] } } } })
    .then((answer) => go(taskLink(answer.task.name)), setProblem);
  const first = list.ready && !list.tasks.length;
  return html`<section aria-label="newest tasks"><h2>Newest tasks</h2><${Problem} error=${problem || list.error} />
    ${first ? html`<p>Nothing has run here yet.</p>` : html`<${Table} rows=${list.ready ? list.tasks : undefined} error=${list.error} empty="" columns=${[
      ["Task", (/** @type {any} */ task) => html`<${TaskLink} task=${task} />`],
      ["Phase", (/** @type {any} */ task) => html`<${Phase} phase=${phaseOf(task)} />`],
      ["What", (/** @type {any} */ task) => what(task.spec)],
      ["Age", (/** @type {any} */ task) => age(task.metadata?.createTime, now)],
      ["Took", (/** @type {any} */ task) => took(task.status, now)],
    ]} />`}
    ${first && me.writes ? html`<div class="toolbar"><button class="primary" onClick=${example}>Run an example</button> <a class="button" href=${link(["create"])}>Create a task</a></div>` : null}</section>`;
}

function Shares() {
  const tenants = useRead(() => get("v1/tenants:shares"), [], 10_000);
  return html`<section aria-label="shares"><h2>Fair shares</h2><${Problem} error=${tenants.error} />
    <${Table} rows=${tenants.value && (tenants.value.shares || [])} error=${tenants.error} empty="No tenant has used a runner lately." key=${(/** @type {any} */ row) => row.tenant} columns=${[
      ["Tenant", (/** @type {any} */ row) => row.tenant.split("/")[1]],
      ["Weight", (/** @type {any} */ row) => number(row.weight)],
      ["Share by weight", (/** @type {any} */ row) => `${Math.round((row.dueShare || 0) * 100)}%`],
      ["Share used", (/** @type {any} */ row) => html`<meter min="0" max="1" value=${row.usedShare || 0} aria-label="share used"></meter> ${Math.round((row.usedShare || 0) * 100)}%`],
    ]} /></section>`;
}

// An examination reads whole tables, so its answer is kept for a while.
const EXAMINED_MS = 600_000;

/** What the doctor found last, at most ten minutes ago in this tab. */
async function examined() {
  const kept = JSON.parse(sessionStorage.getItem("doctor") || "null");
  if (kept && Date.now() - kept.time < EXAMINED_MS) return kept;
  const { healthy = false, findings = [] } = await postInBackground("v1/doctor:run");
  const found = { time: Date.now(), healthy, open: findings.filter((/** @type {any} */ each) => Number(each.count) > 0), seals: findings.find((/** @type {any} */ each) => each.check === "seals") };
  sessionStorage.setItem("doctor", JSON.stringify(found));
  return found;
}

/** Whether a read was answered. @param {{value: any, error: any}} read */
const settled = ({ value, error }) => Boolean(value || error);

/** An examination takes what the database has to give, so it begins behind the calls that the page waits for. @param {{begin: boolean}} properties */
function DoctorSummary({ begin }) {
  const { value, error } = useRead(async () => (begin ? examined() : undefined), [begin], 60_000);
  return html`<section aria-label="doctor"><h2>Doctor</h2><${Problem} error=${error} />${value ? html`<p class=${value.healthy ? "good" : "problem"}>
    ${value.healthy ? "✓ Every invariant holds." : `✗ ${value.open.map((/** @type {any} */ each) => each.check).join(", ")}`}
    ${value.seals ? (Number(value.seals.count || 0) === 0 ? " Seals of the audit trail are intact." : " Seals of the audit trail are broken.") : ""} <a href=${link(["doctor"])}>Details</a></p>` : error ? null : html`<p class="empty">Examining…</p>`}</section>`;
}

// The filter of the task list: typed with completion, by chips, by time, or from a saved view; all of it in the URL.
import { html, useEffect, useState } from "../dom.js";
import { inert, PHASES } from "../format.js";
import { Confirm } from "../parts.js";
import { setQuery } from "../router.js";

const FIELDS = ["id", "spec.task_type", "spec.slot", "spec.entity.type", "spec.entity.id", "spec.priority", "status.phase", "status.runner", "status.attempt", "status.retry_count", "status.error.code", "metadata.create_time", "metadata.update_time", "status.start_time", "status.end_time", "metadata.creator.id", "metadata.parent_task", "metadata.labels."];
/** How far back the list goes. @type {Record<string, [string, number]>} */
export const TIMES = { hour: ["last hour", 3600e3], day: ["last 24 hours", 86400e3], week: ["last 7 days", 604800e3], all: ["any time", 0] };
export const USUAL_TIME = "day";
const CHIPS = 6;

/** The filter with the time of creation. @param {string} filter @param {string} since @param {number} now */
export function bounded(filter, since, now) {
  const [, back] = TIMES[since] || TIMES[USUAL_TIME];
  if (!back) return filter;
  const from = new Date(Math.floor((now - back) / 60_000) * 60_000).toISOString();
  return (filter ? `(${filter}) AND ` : "") + `metadata.create_time >= "${from}"`;
}

/** What could stand at the end of a filter. @param {string} text */
export function completions(text) {
  const value = /^(.*status\.phase\s*=\s*)(\w*)$/s.exec(text);
  if (value) return ["LIVE", "TERMINAL", ...PHASES].filter((phase) => phase.startsWith(value[2].toUpperCase())).map((phase) => value[1] + phase);
  const begun = /^(.*?)([\w.]*)$/s.exec(text);
  if (!begun || /[=<>]\s*$/.test(begun[1])) return [];
  return FIELDS.filter((field) => field.startsWith(begun[2])).map((field) => begun[1] + field);
}

/** The filter without this term, or with it in the place of others that begin alike. @param {string} filter @param {string} term @param {string} [instead] */
export function toggled(filter, term, instead) {
  const terms = filter.split(" AND ").map((each) => each.trim()).filter(Boolean);
  if (terms.includes(term)) return terms.filter((each) => each !== term).join(" AND ");
  return [...terms.filter((each) => !instead || !each.startsWith(instead)), term].join(" AND ");
}

/** The types and labels of the listed tasks, most frequent first, as terms of a filter. @param {any[]} tasks @returns {[string, string, string][]} */
export function suggestions(tasks) {
  const counts = /** @type {Map<string, [number, string, string]>} */ (new Map());
  const add = (/** @type {string} */ term, /** @type {string} */ label, /** @type {string} */ instead) => counts.set(term, [(counts.get(term)?.[0] || 0) + 1, label, instead]);
  for (const task of tasks) {
    if (task.spec?.taskType) add(`spec.task_type = ${JSON.stringify(task.spec.taskType)}`, task.spec.taskType, "spec.task_type = ");
    for (const [key, value] of Object.entries(task.metadata?.labels || {})) {
      if (/^[\w-]+$/.test(key)) add(`metadata.labels.${key} = ${JSON.stringify(value)}`, `${key}=${value}`, `metadata.labels.${key} = `);
    }
  }
  return [...counts].sort((left, right) => right[1][0] - left[1][0]).slice(0, CHIPS).map(([term, [, label, instead]]) => [term, label, instead]);
}

/** @param {{filter: string, since: string, columns: string[], all: string[], tasks: any[], tenant: string, admin: boolean}} properties */
export function FilterBar({ filter, since, columns, all, tasks, tenant, admin }) {
  const [text, setText] = useState(filter);
  useEffect(() => setText(filter), [filter]);
  const submit = (/** @type {Event} */ event) => { event.preventDefault(); setQuery({ filter: text.trim() }); };
  const chip = (/** @type {string} */ term, /** @type {string} */ label, /** @type {string} */ instead) =>
    html`<button class="chip" key=${term} aria-pressed=${filter.includes(term) ? "true" : "false"} onClick=${() => setQuery({ filter: toggled(filter, term, instead) })}>${inert(label)}</button>`;
  const chosen = suggestions(tasks);
  return html`<form class="filter" onSubmit=${submit} role="search">
      <label for="filter">Filter</label><input id="filter" list="fields" autocomplete="off" value=${text} placeholder='status.phase = FAILED AND metadata.labels.team = "docs"' onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <datalist id="fields">${completions(text).map((each) => html`<option value=${each} />`)}</datalist>
      <label>Created <select value=${since} onChange=${(/** @type {any} */ event) => setQuery({ since: event.target.value })}>${Object.entries(TIMES).map(([name, [label]]) => html`<option value=${name}>${label}</option>`)}</select></label>
      ${admin ? html`<label>Tenant <input class="short" value=${tenant} placeholder="all" onChange=${(/** @type {any} */ event) => setQuery({ tenant: event.target.value.trim() })} /></label>` : null}
      <button>Apply</button>${filter ? html`<button type="button" onClick=${() => setQuery({ filter: "" })}>Clear</button>` : null}</form>
    <div class="chips">${["LIVE", ...PHASES].map((phase) => chip(`status.phase = ${phase}`, phase, "status.phase = "))}</div>
    ${chosen.length ? html`<div class="chips" aria-label="types and labels">${chosen.map(([term, label, instead]) => chip(term, label, instead))}</div>` : null}
    <div class="chips"><${Views} /><${Columns} columns=${columns} all=${all} /></div>`;
}

/** @param {{columns: string[], all: string[]}} properties */
function Columns({ columns, all }) {
  const toggle = (/** @type {string} */ column) =>
    setQuery({ columns: (columns.includes(column) ? columns.filter((each) => each !== column) : [...columns, column]).join(",") });
  return html`<details class="columns"><summary>Columns</summary>${all.map((column) => html`<label><input type="checkbox" checked=${columns.includes(column)} onChange=${() => toggle(column)} /> ${column}</label>`)}</details>`;
}

/** @returns {Record<string, string>} */
function savedViews() {
  try {
    return JSON.parse(localStorage.getItem("views") || "{}");
  } catch {
    return {};
  }
}

/** Views of this browser: a name for what the URL says. */
function Views() {
  const [views, setViews] = useState(savedViews());
  const [naming, setNaming] = useState(false);
  const [name, setName] = useState("");
  const store = (/** @type {Record<string, string>} */ next) => { localStorage.setItem("views", JSON.stringify(next)); setViews(next); };
  const save = async () => {
    if (!name.trim()) throw new Error("A view needs a name.");
    store({ ...views, [name.trim()]: location.hash });
  };
  const remove = (/** @type {string} */ gone) => { const { [gone]: _, ...rest } = views; store(rest); };
  return html`<button class="chip" onClick=${() => { setName(""); setNaming(true); }}>Save this view…</button>
    ${Object.entries(views).map(([each, target]) => html`<span class="chip view" key=${each}><a href=${target}>${inert(each)}</a> <button class="remove" aria-label=${`Remove the view ${inert(each)}`} onClick=${() => remove(each)}>×</button></span>`)}
    ${naming ? html`<${Confirm} title="Save this view" action="Save" onConfirm=${save} onClose=${() => setNaming(false)}><label>Name <input value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label></${Confirm}>` : null}`;
}

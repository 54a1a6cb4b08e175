// What a task waits for and what waits for it, as a small graph.
import { get } from "../api.js";
import { html } from "../dom.js";
import { inert, last, phaseOf, number, tenantOf, TERMINAL, word } from "../format.js";
import { Phase, Problem, Table, taskLink, useRead } from "../parts.js";

// More are listed below the graph, and further ones counted.
const DRAWN = 12;
const READ = 100;
const WIDTH = 200;
const GAP = 90;
const HEIGHT = 40;
const STEP = 52;
const LETTERS = 24;

/** @typedef {{name: string, phase: string, when: string, alias: string}} Neighbour */

/** @param {{task: any}} properties */
export function Dependencies({ task }) {
  const after = /** @type {any[]} */ (task.spec?.after || []);
  const live = !TERMINAL.has(phaseOf(task));
  const { value, error } = useRead(() => neighbours(task.name, after), [task.name, task.metadata?.resourceVersion], live && after.length ? 5000 : undefined);
  if (!value) return error ? html`<${Problem} error=${error} />` : null;
  const { before, behind, more } = value;
  if (!before.length && !behind.length) return null;
  return html`<section aria-label="dependencies"><h2>Dependencies</h2><${Problem} error=${error} /><${Graph} task=${task} before=${before} behind=${behind} />
    ${before.length > DRAWN || behind.length > DRAWN ? html`<${Table} rows=${[...before.map((each) => ({ ...each, role: "waits for" })), ...behind.map((each) => ({ ...each, role: "waited for by" }))]} empty="" key=${(/** @type {any} */ row) => row.role + row.name} columns=${[
      ["It", (/** @type {any} */ row) => row.role],
      ["Task", (/** @type {any} */ row) => html`<a href=${taskLink(row.name)}>${inert(last(row.name))}</a>`],
      ["Phase", (/** @type {any} */ row) => (row.phase ? html`<${Phase} phase=${row.phase} />` : "archived or deleted")],
      ["Condition", (/** @type {any} */ row) => row.when],
    ]} />` : null}
    ${after.length > before.length ? html`<p>The first ${number(before.length)} of ${number(after.length)} that it waits for.</p>` : null}
    ${more ? html`<p>The newest ${number(behind.length)} of those that wait for it.</p>` : null}</section>`;
}

/** @param {string} name @param {any[]} after @returns {Promise<{before: Neighbour[], behind: Neighbour[], more: boolean}>} */
async function neighbours(name, after) {
  const parent = `v1/tenants/${tenantOf(name)}/tasks`;
  const first = after.slice(0, READ);
  const [found, dependents] = await Promise.all([
    first.length ? get(`${parent}:batchGet`, { names: first.map((each) => each.task), view: "TASK_VIEW_NAME", allowMissing: true }) : { tasks: [] },
    get(parent, { filter: `spec.after = "${name}"`, pageSize: READ, view: "TASK_VIEW_NAME" }),
  ]);
  const phases = new Map((found.tasks || []).map((/** @type {any} */ task) => [task.name, phaseOf(task)]));
  return {
    before: first.map((each) => ({ name: each.task, phase: phases.get(each.task) || "", when: condition(each.when), alias: each.alias || "" })),
    behind: (dependents.tasks || []).map((/** @type {any} */ task) => ({ name: task.name, phase: phaseOf(task), when: "", alias: "" })),
    more: Boolean(dependents.nextPageToken),
  };
}

/** @param {string | undefined} when */
const condition = (when) => word(when, "DEPENDENCY_CONDITION_").toLowerCase().replace("_", " ") || "succeeded";

/** @param {{task: any, before: Neighbour[], behind: Neighbour[]}} properties */
function Graph({ task, before, behind }) {
  const sides = [before, behind].map((side) => side.slice(0, DRAWN));
  const rows = Math.max(1, sides[0].length, sides[1].length);
  const height = rows * STEP + 8;
  const middle = height / 2;
  const left = sides[0].length ? WIDTH + GAP : 4;
  const right = left + WIDTH + GAP;
  const width = sides[1].length ? right + WIDTH + 4 : left + WIDTH + 4;
  const place = (/** @type {Neighbour[]} */ side, /** @type {number} */ index) => middle + (index - (side.length - 1) / 2) * STEP;
  const curve = (/** @type {number} */ x, /** @type {number} */ from, /** @type {number} */ to) => `M ${x} ${from} C ${x + GAP / 2} ${from}, ${x + GAP / 2} ${to}, ${x + GAP - 7} ${to}`;
  return html`<div class="scroll graph" tabindex="0" role="region" aria-label="graph of dependencies"><svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${`waits for ${before.length}, waited for by ${behind.length}`}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" /></marker></defs>
    ${sides[0].map((each, index) => html`<path class=${`edge ${TERMINAL.has(each.phase) ? "" : "open"}`} d=${curve(WIDTH + 4, place(sides[0], index), middle)} marker-end="url(#arrow)" />`)}
    ${sides[1].map((_, index) => html`<path class="edge" d=${curve(left + WIDTH, middle, place(sides[1], index))} marker-end="url(#arrow)" />`)}
    ${sides[0].map((each, index) => html`<${Node} x=${4} y=${place(sides[0], index)} neighbour=${each} />`)}
    <${Node} x=${left} y=${middle} neighbour=${{ name: task.name, phase: phaseOf(task), when: "", alias: "" }} own=${true} />
    ${sides[1].map((each, index) => html`<${Node} x=${right} y=${place(sides[1], index)} neighbour=${each} />`)}
  </svg></div>`;
}

/** @param {{x: number, y: number, neighbour: Neighbour, own?: boolean}} properties */
function Node({ x, y, neighbour, own }) {
  const id = inert(last(neighbour.name));
  const condition = neighbour.when && neighbour.when !== "succeeded" ? `, has to be ${neighbour.when}` : "";
  const phase = neighbour.phase || "gone";
  const title = id.length > LETTERS ? `${id.slice(0, LETTERS - 1)}…` : id;
  const line = `${phase}${condition}${neighbour.alias ? ` → ${inert(neighbour.alias)}` : ""}`;
  const box = html`<rect class=${own ? "node own" : "node"} x=${x} y=${y - HEIGHT / 2} width=${WIDTH} height=${HEIGHT} rx="6" />
    <text x=${x + 10} y=${y - 3}>${title}</text>${" "}
    <text class=${`small phase-${phase.toLowerCase()}`} x=${x + 10} y=${y + 13}>${line}</text>`;
  return own ? html`<g>${box}</g>` : html`<a href=${taskLink(neighbour.name)}>${box}</a>`;
}

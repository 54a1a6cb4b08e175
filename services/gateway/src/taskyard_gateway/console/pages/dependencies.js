// What a task waits for and what waits for it, as a small graph.
import { get } from "../api.js";
import { html } from "../dom.js";
import { inert, last, phaseOf, number, tenantOf, TERMINAL, word } from "../format.js";
import { Graph } from "../graph.js";
import { nameLink, Phase, Problem, Table, useRead } from "../parts.js";

// More are listed below the graph, and further ones counted.
const DRAWN = 12;
const READ = 100;
const ENDED = new Set([...TERMINAL, "COMPLETE"]);

/** @typedef {{name: string, phase: string, when: string, alias: string}} Neighbour */

/** @param {{task: any}} properties */
export function Dependencies({ task }) {
  const after = /** @type {any[]} */ (task.spec?.after || []);
  const live = !TERMINAL.has(phaseOf(task));
  const { value, error } = useRead(() => neighbours(task.name, after), [task.name, task.metadata?.resourceVersion], live && after.length ? 5000 : undefined);
  if (!value) return error ? html`<${Problem} error=${error} />` : null;
  const { before, behind, more } = value;
  if (!before.length && !behind.length) return null;
  return html`<section aria-label="dependencies"><h2>Dependencies</h2><${Problem} error=${error} /><${Around} task=${task} before=${before} behind=${behind} />
    ${before.length > DRAWN || behind.length > DRAWN ? html`<${Table} rows=${[...before.map((each) => ({ ...each, role: "waits for" })), ...behind.map((each) => ({ ...each, role: "waited for by" }))]} empty="" key=${(/** @type {any} */ row) => row.role + row.name} columns=${[
      ["It", (/** @type {any} */ row) => row.role],
      ["Task", (/** @type {any} */ row) => html`<a href=${nameLink(row.name)}>${inert(last(row.name))}</a>`],
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
  const names = first.map((each) => each.task).filter(Boolean);
  const [found, groups, dependents] = await Promise.all([
    names.length ? get(`${parent}:batchGet`, { names, view: "TASK_VIEW_NAME", allowMissing: true }) : { tasks: [] },
    Promise.all(first.filter((each) => each.group).map((each) => get(`v1/${each.group}`).then((answer) => answer.group, unlessGone))),
    get(parent, { filter: `spec.after = "${name}"`, pageSize: READ, view: "TASK_VIEW_NAME" }),
  ]);
  const phases = new Map((found.tasks || []).map((/** @type {any} */ task) => [task.name, phaseOf(task)]));
  for (const group of groups) if (group) phases.set(group.name, word(group.state, "GROUP_STATE_"));
  return {
    before: first.map((each) => ({ name: each.task || each.group, phase: phases.get(each.task || each.group) || "", when: condition(each.when), alias: each.alias || "" })),
    behind: (dependents.tasks || []).map((/** @type {any} */ task) => ({ name: task.name, phase: phaseOf(task), when: "", alias: "" })),
    more: Boolean(dependents.nextPageToken),
  };
}

/** A group that was deleted has no state. @param {any} error */
function unlessGone(error) {
  if (error.status === 404) return null;
  throw error;
}

/** @param {string | undefined} when */
export const condition = (when) => word(when, "DEPENDENCY_CONDITION_").toLowerCase().replace("_", " ") || "succeeded";

/** @param {{task: any, before: Neighbour[], behind: Neighbour[]}} properties */
function Around({ task, before, behind }) {
  const own = { name: task.name, phase: phaseOf(task), own: true };
  const [left, right] = [before, behind].map((side) => side.slice(0, DRAWN).map((each) => ({ name: each.name, phase: each.phase, note: noteOf(each) })));
  const arrows = [...left.map((item) => ({ from: item, to: own, open: !ENDED.has(item.phase) })), ...right.map((item) => ({ from: own, to: item, open: false }))];
  return html`<${Graph} columns=${[left, [own], right].filter((column) => column.length)} arrows=${arrows} label=${`waits for ${before.length}, waited for by ${behind.length}`} />`;
}

/** @param {Neighbour} neighbour */
const noteOf = ({ when, alias }) => `${when && when !== "succeeded" ? `, has to be ${when}` : ""}${alias ? ` → ${inert(alias)}` : ""}`;

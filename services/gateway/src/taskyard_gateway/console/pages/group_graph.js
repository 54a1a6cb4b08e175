// What the tasks of a group wait for among themselves, as a graph.
import { html } from "../dom.js";
import { inert, last, number, phaseOf, TERMINAL } from "../format.js";
import { Graph } from "../graph.js";
import { condition } from "./dependencies.js";

/** @typedef {import("../graph.js").Item} Item */
/** @typedef {import("../graph.js").Arrow} Arrow */

/** What the tasks wait for among themselves. @param {{tasks: any[], more: boolean}} properties */
export function GroupGraph({ tasks, more }) {
  const items = new Map(tasks.map((task) => [task.name, { name: task.name, phase: phaseOf(task) }]));
  const arrows = tasks.flatMap((task) => (task.spec?.after || []).flatMap((/** @type {any} */ each) => {
    const [from, to] = [items.get(each.task), items.get(task.name)];
    return from && to ? [{ from, to, open: !TERMINAL.has(from.phase), title: `${inert(last(to.name))} waits until ${inert(last(from.name))} has ${condition(each.when)}` }] : [];
  }));
  const bound = more ? html`<p>Of the newest ${number(tasks.length)} tasks only.</p>` : null;
  if (!arrows.length) return html`<p class="empty">None of its tasks waits for another one of them.</p>${bound}`;
  return html`<${Graph} columns=${columnsOf(arrows)} arrows=${arrows} label=${`${arrows.length} dependencies within the group`} />
    ${bound}<p><small>Tasks that neither wait for another one of the group nor are waited for are listed only.</small></p>`;
}

/**
 * Each task right of all that it waits for, near the middle of those.
 * @param {Arrow[]} arrows @returns {Item[][]}
 */
function columnsOf(arrows) {
  /** @type {Map<Item, Item[]>} */
  const before = new Map();
  for (const { from, to } of arrows) {
    if (!before.has(from)) before.set(from, []);
    before.set(to, [...(before.get(to) || []), from]);
  }
  /** @type {Map<Item, number>} */
  const depths = new Map();
  const depth = (/** @type {Item} */ item) => {
    if (!depths.has(item)) depths.set(item, Math.max(0, ...(before.get(item) || []).map((each) => depth(each) + 1)));
    return /** @type {number} */ (depths.get(item));
  };
  /** @type {Item[][]} */
  const columns = [];
  for (const item of before.keys()) (columns[depth(item)] ||= []).push(item);
  const left = makeRoom(arrows, columns, depth);
  /** @type {Map<Item, number>} */
  const rows = new Map();
  for (const column of columns) {
    const middle = (/** @type {Item} */ item) => (left.get(item) || []).reduce((sum, each) => sum + (rows.get(each) || 0), 0) / (left.get(item)?.length || 1);
    column.sort((one, other) => middle(one) - middle(other) || one.name.localeCompare(other.name));
    column.forEach((item, index) => rows.set(item, index - (column.length - 1) / 2));
  }
  return columns;
}

/**
 * Adds room to the columns that arrows cross, one for all arrows of a task; returns what each item has left of it.
 * @param {Arrow[]} arrows @param {Item[][]} columns @param {(item: Item) => number} depth @returns {Map<Item, Item[]>}
 */
function makeRoom(arrows, columns, depth) {
  /** @type {Map<Item, Item[]>} */
  const left = new Map();
  /** @type {Map<Item, Item[]>} */
  const rooms = new Map();
  for (const arrow of arrows) {
    const own = rooms.get(arrow.from) || [];
    rooms.set(arrow.from, own);
    arrow.via = [];
    for (let at = depth(arrow.from) + 1; at < depth(arrow.to); at += 1) {
      if (!own[at]) {
        own[at] = { name: "", phase: "" };
        columns[at].push(own[at]);
        left.set(own[at], [arrow.via.at(-1) || arrow.from]);
      }
      arrow.via.push(own[at]);
    }
    left.set(arrow.to, [...(left.get(arrow.to) || []), arrow.via.at(-1) || arrow.from]);
  }
  return left;
}

// Groups of tasks: how many of each are live and how the others ended.
import { get } from "../api.js";
import { html, useState } from "../dom.js";
import { age, clock, inert, last, number, tenantOf, word } from "../format.js";
import { nameLink, Problem, Table, useNow, useRead } from "../parts.js";
import { setQuery } from "../router.js";

const STATES = ["", "OPEN", "CLOSED", "COMPLETE"];
const ROWS = 100;

/** @param {{me: import("../main.js").Me, route: import("../router.js").Route}} properties */
export function Groups({ me, route }) {
  const asked = route.query.get("state") || "";
  const state = STATES.includes(asked) ? asked : "";
  const [pages, setPages] = useState(1);
  const { value, error } = useRead(() => read(me.parent, state, pages), [me.parent, state, pages], 5000);
  const now = useNow();
  const choose = (/** @type {string} */ each) => { setPages(1); setQuery({ state: each }); };
  return html`<h1>Groups</h1><${Problem} error=${error} />
    <div class="chips" role="group" aria-label="state">${STATES.map((each) => html`<button class="chip" aria-pressed=${String(each === state)} onClick=${() => choose(each)}>${each.toLowerCase() || "all"}</button>`)}</div>
    ${value ? html`<${Table} rows=${value.groups} empty=${state ? "No group is in this state." : "No group yet. A task that names one in metadata.group (submit --group) makes it."} columns=${[
      ["Group", (/** @type {any} */ group) => html`<a href=${nameLink(group.name)}>${inert(last(group.name))}</a>`],
      ...(me.admin ? [["Tenant", (/** @type {any} */ group) => tenantOf(group.name)]] : []),
      ["State", (/** @type {any} */ group) => html`<${State} group=${group} />`],
      ["Live", (/** @type {any} */ group) => number(group.liveCount)],
      ["Succeeded", (/** @type {any} */ group) => number(group.succeededCount)],
      ["Not succeeded", (/** @type {any} */ group) => number(group.notSucceededCount)],
      ["Created", (/** @type {any} */ group) => html`${clock(group.createTime)} <small>${age(group.createTime, now)} ago</small>`],
      ["Complete", (/** @type {any} */ group) => clock(group.completeTime)],
    ]} />` : error ? null : html`<p class="loading">Loading…</p>`}
    ${value?.more ? html`<p><button onClick=${() => setPages(pages + 1)}>More groups</button></p>` : null}`;
}

/** The first pages of the list. @param {string} parent @param {string} state @param {number} pages */
async function read(parent, state, pages) {
  /** @type {any[]} */
  const groups = [];
  let pageToken = "";
  for (let page = 0; page < pages && (page === 0 || pageToken); page += 1) {
    const found = await get(`v1/${parent}/groups`, { filter: state && `state = ${state}`, pageSize: ROWS, pageToken });
    groups.push(...(found.groups || []));
    pageToken = found.nextPageToken || "";
  }
  return { groups, more: Boolean(pageToken) };
}

/** @param {{group: any}} properties */
export const State = ({ group }) => {
  const state = word(group.state, "GROUP_STATE_").toLowerCase();
  return html`<span class=${`phase state-${state}`}>${state}</span>${group.cancelTime ? html` <small>${state === "complete" ? "cancelled" : "being cancelled"}</small>` : null}`;
};

// One group: its counts, its tasks, what they wait for among themselves, and the buttons to steer it.
import { get, post } from "../api.js";
import { html, useState } from "../dom.js";
import { age, clock, inert, last, number, phaseOf, took } from "../format.js";
import { Confirm, nameLink, Phase, Problem, Table, TaskLink, useNow, useRead } from "../parts.js";
import { condition } from "./dependencies.js";
import { GroupGraph } from "./group_graph.js";
import { State } from "./groups.js";
import { ROWS, useTasks } from "./task_list.js";
import { History, useAudit } from "./timeline.js";

// Of a longer spec.after, the first are named.
const NAMED = 3;

/** @param {{me: import("../main.js").Me, tenant: string, id: string}} properties */
export function GroupPage({ me, tenant, id }) {
  const name = `tenants/${tenant}/groups/${id}`;
  const { value, error, reload } = useRead(() => get(`v1/${name}`), [name], 2000);
  const list = useTasks(`tenants/${tenant}`, `metadata.group = "${id}"`);
  const now = useNow();
  const group = value?.group;
  const audit = useAudit(name, group ? `${group.state} ${group.completionCount} ${group.cancelTime}` : "");
  if (!group) return html`<h1>${inert(id)}</h1>${error ? html`<${Problem} error=${error} />` : html`<p class="loading">Loading…</p>`}`;
  return html`<h1>${inert(id)} <${State} group=${group} /></h1><${Problem} error=${error} />
    ${me.writes ? html`<${Actions} group=${group} onDone=${reload} />` : null}
    <${Counts} group=${group} /><${Summary} group=${group} now=${now} />
    <section aria-label="graph"><h2>Dependencies</h2>${list.ready ? html`<${GroupGraph} tasks=${list.tasks.slice(0, ROWS)} more=${Boolean(list.next) || list.tasks.length > ROWS} />` : html`<p class="loading">Loading…</p>`}</section>
    <section aria-label="tasks"><h2>Tasks</h2><${Problem} error=${list.error} />
      <div class="toolbar"><span role="status">${list.ready ? `${list.next ? "The newest " : ""}${number(list.tasks.length)} task${list.tasks.length === 1 ? "" : "s"}` : ""}${list.pending ? html`, <button onClick=${list.reload}>${number(list.pending)} changes: show</button>` : ""}</span></div>
      ${list.ready ? html`<${Table} rows=${list.tasks} empty="It has no task; archived and deleted ones are counted only." columns=${[
        ["Task", (/** @type {any} */ task) => html`<${TaskLink} task=${task} />`],
        ["Phase", (/** @type {any} */ task) => html`<${Phase} phase=${phaseOf(task)} />`],
        ["Waits for", (/** @type {any} */ task) => waitsFor(task.spec?.after || [])],
        ["Age", (/** @type {any} */ task) => age(task.metadata?.createTime, now)],
        ["Took", (/** @type {any} */ task) => took(task.status, now)],
        ["Error", (/** @type {any} */ task) => inert(task.status?.error?.code)],
      ]} />` : null}${list.next ? html`<button onClick=${list.more}>Older tasks</button>` : null}</section>
    <section aria-label="history"><h2>History</h2><${History} audit=${audit} /></section>`;
}

/** @param {any[]} after */
function waitsFor(after) {
  const names = after.slice(0, NAMED).map((each) => `${inert(last(each.task || each.group))}${each.group ? " (group)" : ""}${condition(each.when) === "succeeded" ? "" : `: ${condition(each.when)}`}`);
  return names.join(", ") + (after.length > NAMED ? ` and ${number(after.length - NAMED)} more` : "");
}

/** How the tasks divide, as a bar with its numbers. @param {{group: any}} properties */
function Counts({ group }) {
  const parts = /** @type {[string, string, number][]} */ ([["good", "succeeded", Number(group.succeededCount || 0)], ["bad", "did not succeed", Number(group.notSucceededCount || 0)], ["phase-running", "live", Number(group.liveCount || 0)]]);
  const total = parts.reduce((sum, [, , count]) => sum + count, 0);
  let begin = 0;
  const text = parts.map(([, label, count]) => `${number(count)} ${label}`).join(", ");
  return html`<section aria-label="counts"><svg class="bar counts" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${text}>${parts.map(([style, , count]) => {
    const x = begin;
    begin += total ? (count / total) * 100 : 0;
    return count ? html`<rect class=${style} x=${x} y="0" height="10" width=${begin - x} />` : null;
  })}</svg><p>${parts.map(([style, label, count], index) => html`${index ? ", " : ""}<b class=${style}>${number(count)}</b> ${label}`)}</p></section>`;
}

/** @param {{group: any, now: number}} properties */
function Summary({ group, now }) {
  const rows = [
    ["Created", `${clock(group.createTime)} (${age(group.createTime, now)} ago)`],
    ["Closed", clock(group.closeTime)],
    ["Cancelled", clock(group.cancelTime)],
    ["Complete", group.completeTime ? `${clock(group.completeTime)}${group.completionCount > 1 ? ` (${number(group.completionCount)} times)` : ""}` : ""],
    ["Children of", group.parentTask ? html`<a href=${nameLink(group.parentTask)}>${inert(last(group.parentTask))}</a>` : ""],
    ["Webhook", inert(group.callback?.url)],
  ];
  return html`<dl>${rows.filter(([, value]) => value !== "").map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {{group: any, onDone: () => void}} properties */
function Actions({ group, onDone }) {
  const [asked, setAsked] = useState("");
  const [reason, setReason] = useState("");
  const close = () => setAsked("");
  const open = group.state === "GROUP_STATE_OPEN";
  if (group.state === "GROUP_STATE_COMPLETE" && !asked) return null;
  return html`<div class="toolbar">${open ? html`<button onClick=${() => setAsked("close")}>Close…</button>` : null}<button onClick=${() => { setReason(""); setAsked("cancel"); }}>Cancel…</button></div>
    ${asked === "close" ? html`<${Confirm} title="Close this group" action="Close the group" onConfirm=${() => post(`v1/${group.name}:close`).then(onDone)} onClose=${close}>
      <p>No more tasks may be created in it. It is complete once its ${number(group.liveCount)} live tasks have ended.</p></${Confirm}>` : null}
    ${asked === "cancel" ? html`<${Confirm} title="Cancel this group" action="Cancel the group" onConfirm=${() => post(`v1/${group.name}:cancel`, { reason }).then(onDone)} onClose=${close}>
      <p>No more tasks may be created in it, and its <b>${number(group.liveCount)}</b> live tasks are cancelled.</p><label>Why <input value=${reason} maxlength="1024" onInput=${(/** @type {any} */ event) => setReason(event.target.value)} /></label></${Confirm}>` : null}`;
}

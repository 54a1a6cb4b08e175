// The list of tasks: live, filtered by the URL, with actions on everything that the filter finds.
import { html, useMemo, useState } from "../dom.js";
import { age, inert, last, number, phaseOf, tenantOf, took, what } from "../format.js";
import { Phase, Problem, Progress, Table, TaskLink, useNow } from "../parts.js";
import { Bulk, Export } from "./bulk.js";
import { bounded, FilterBar, TIMES, USUAL_TIME } from "./filter_bar.js";
import { ROWS, useTasks } from "./task_list.js";

const COLUMNS = /** @type {Record<string, (task: any, now: number) => any>} */ ({
  Phase: (task) => html`<${Phase} phase=${phaseOf(task)} />`,
  Tenant: (task) => tenantOf(task.name),
  Type: (task) => inert(task.spec?.taskType),
  What: (task) => what(task.spec),
  Age: (task, now) => age(task.metadata?.createTime, now),
  Took: (task, now) => took(task.status, now),
  Runner: (task) => inert(last(task.status?.runner || task.status?.lastRunner)),
  Progress: (task) => html`<${Progress} percent=${task.status?.progress?.percent} message=${task.status?.progress?.message} />`,
  Error: (task) => inert(task.status?.error?.code),
  Attempt: (task) => task.status?.attempt || "",
  Priority: (task) => task.spec?.priority ?? "",
  Slot: (task) => inert(task.spec?.slot),
  Creator: (task) => inert(task.metadata?.creator?.id),
  Labels: (task) => inert(Object.entries(task.metadata?.labels || {}).map(([key, value]) => `${key}=${value}`).join(" ")),
});
const SHOWN = ["Phase", "What", "Type", "Age", "Took", "Runner", "Progress", "Error"];

/** @param {{me: import("../main.js").Me, route: import("../router.js").Route}} properties */
export function Tasks({ me, route }) {
  const typed = route.query.get("filter") || "";
  const since = route.query.get("since") || USUAL_TIME;
  const tenant = me.admin ? route.query.get("tenant") || "" : me.tenant;
  const parent = tenant ? `tenants/${tenant}` : "tenants/-";
  const columns = (route.query.get("columns") || SHOWN.join(",")).split(",").filter((name) => COLUMNS[name]);
  const filter = useMemo(() => bounded(typed, since, Date.now()), [typed, since]);
  const now = useNow();
  const list = useTasks(parent, filter);
  const [asked, setAsked] = useState("");
  // Across tenants, actions go to the tenant of the listed tasks, if it is one.
  const tenants = new Set(list.tasks.map((task) => tenantOf(task.name)));
  const target = tenant || (tenants.size === 1 ? [...tenants][0] : "");
  const empty = typed ? "No task matches the filter." : since === "all" ? "No tasks yet. Press n to create one." : `No tasks of the ${(TIMES[since] || TIMES[USUAL_TIME])[0]}. Press n to create one.`;
  return html`<h1>Tasks</h1>
    <${FilterBar} filter=${typed} since=${since} columns=${columns} all=${Object.keys(COLUMNS)} tasks=${list.tasks} tenant=${tenant} admin=${me.admin} />
    <${Problem} error=${list.error} />
    <div class="toolbar"><span role="status">${!list.ready ? "" : list.tasks.length >= ROWS ? `The newest ${number(list.tasks.length)}` : `${number(list.tasks.length)} task${list.tasks.length === 1 ? "" : "s"}`}${list.pending ? html`, <button onClick=${list.reload}>${number(list.pending)} changes: show</button>` : ""}</span>
      ${me.writes ? ["cancel", "retry", "delete"].map((action) => html`<button disabled=${!target} title=${target ? "" : "Choose a tenant first"} onClick=${() => setAsked(action)}>${action[0].toUpperCase() + action.slice(1)} all…</button>`) : null}
      <${Export} parent=${parent} filter=${filter} /></div>
    ${list.ready ? html`<${Table} rows=${list.tasks} empty=${empty} columns=${[
      ["Task", (/** @type {any} */ task) => html`<${TaskLink} task=${task} />`],
      ...columns.map((name) => [name, (/** @type {any} */ task) => COLUMNS[name](task, now)]),
    ]} />` : html`<p class="loading">Loading…</p>`}
    ${list.next ? html`<button onClick=${list.more}>Older tasks</button>` : null}
    ${asked ? html`<${Bulk} action=${asked} filter=${filter} tenant=${target} onClose=${() => setAsked("")} onDone=${list.reload} />` : null}`;
}

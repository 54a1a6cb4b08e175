// Task types of the tenant and those that all tenants share.
import { all, call, get } from "../api.js";
import { html, useState } from "../dom.js";
import { bytesText, clock, inert, last } from "../format.js";
import { Problem, Table, useRead } from "../parts.js";
import { link } from "../router.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Types({ me }) {
  const read = async () => [
    ...(await all(`v1/${me.admin ? "tenants/-" : me.parent}/taskTypes`, "taskTypes")),
    ...(me.admin ? [] : await all("v1/tenants/system/taskTypes", "taskTypes").catch(() => [])),
  ];
  const { value, error, reload } = useRead(read, [me.parent], 10_000);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const set = (/** @type {any} */ type, /** @type {string} */ field, /** @type {boolean} */ on) =>
    call("PATCH", `v1/${type.name}`, { name: type.name, [field]: on }, { updateMask: field }).then(() => { setProblem(null); reload(); }, setProblem);
  const own = (/** @type {any} */ type) => me.writes && (me.admin || type.name.startsWith(`${me.parent}/`));
  return html`<h1>Task types</h1><${Problem} error=${problem || error} />
    <${Table} rows=${value} error=${error} empty="No task type is registered; taskyard apply registers them." columns=${[
      ["Type", (/** @type {any} */ type) => html`<a href=${link(["tasks"], { filter: `spec.task_type = "${last(type.name)}"` })}>${inert(last(type.name))}</a>`],
      ["Tenant", (/** @type {any} */ type) => type.name.split("/")[1]],
      ["About", (/** @type {any} */ type) => inert(type.description)],
      ["Runs", (/** @type {any} */ type) => Object.keys(type.execution || {}).join(" ")],
      ["State", (/** @type {any} */ type) => (type.disabled ? "disabled" : type.queuePaused ? "paused" : "in use")],
      ["Revision", (/** @type {any} */ type) => type.revision],
      ["Changed", (/** @type {any} */ type) => clock(type.updateTime)],
      ["Schema", (/** @type {any} */ type) => html`<${Schema} name=${type.name} revision=${type.revision} />`],
      ["", (/** @type {any} */ type) => html`${me.writes && !type.disabled ? html`<a class="button" href=${link(["create"], { type: last(type.name), ...(me.admin && type.name.split("/")[1] !== "system" ? { tenant: type.name.split("/")[1] } : {}) })}>Create a task</a>` : null}
        ${own(type) ? html` <button onClick=${() => set(type, "queuePaused", !type.queuePaused)}>${type.queuePaused ? "Resume its queue" : "Pause its queue"}</button> <button onClick=${() => set(type, "disabled", !type.disabled)}>${type.disabled ? "Enable" : "Disable"}</button>` : null}`],
    ]} />`;
}

/** The schema of a type's payload, which lists leave out. @param {{name: string, revision: string}} properties */
function Schema({ name, revision }) {
  const [shown, setShown] = useState(false);
  const { value, error } = useRead(() => (shown ? get(`v1/${name}`) : Promise.resolve(null)), [name, revision, shown]);
  if (!shown) return html`<button onClick=${() => setShown(true)}>Show</button>`;
  const schema = value?.taskType?.payloadSchema;
  return html`<${Problem} error=${error} />${value ? (schema ? html`<pre class="value" tabindex="0">${inert(bytesText(schema))}</pre>` : "Any payload. ") : null}<button onClick=${() => setShown(false)}>Hide</button>`;
}

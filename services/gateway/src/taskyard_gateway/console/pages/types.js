// Task types of the tenant and those that all tenants share.
import { all } from "../api.js";
import { html } from "../dom.js";
import { clock, inert, last } from "../format.js";
import { Hidden, Problem, Table, useRead } from "../parts.js";
import { link } from "../router.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Types({ me }) {
  const read = async () => [
    ...(await all(`v1/${me.admin ? "tenants/-" : me.parent}/taskTypes`, "taskTypes")),
    ...(me.admin ? [] : await all("v1/tenants/system/taskTypes", "taskTypes").catch(() => [])),
  ];
  const { value, error } = useRead(read, [me.parent]);
  return html`<h1>Task types</h1><${Problem} error=${error} />
    <${Table} rows=${value || []} empty="No task type is registered; taskyard apply registers them." columns=${[
      ["Type", (/** @type {any} */ type) => html`<a href=${link(["tasks"], { filter: `spec.task_type = "${last(type.name)}"` })}>${inert(last(type.name))}</a>`],
      ["Tenant", (/** @type {any} */ type) => type.name.split("/")[1]],
      ["About", (/** @type {any} */ type) => inert(type.description)],
      ["Runs", (/** @type {any} */ type) => Object.keys(type.execution || {}).join(" ")],
      ["State", (/** @type {any} */ type) => (type.disabled ? "disabled" : type.queuePaused ? "paused" : "in use")],
      ["Revision", (/** @type {any} */ type) => type.revision],
      ["Changed", (/** @type {any} */ type) => clock(type.updateTime)],
      ["Schema", (/** @type {any} */ type) => (type.payloadSchema ? html`<${Hidden} label="schema" text=${() => type.payloadSchema} />` : "any")],
    ]} />`;
}

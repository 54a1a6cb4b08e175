// Runners: what they can take, what they hold, and why nothing goes there.
import { all, call, post } from "../api.js";
import { html, useState } from "../dom.js";
import { age, inert, last, number, word } from "../format.js";
import { Confirm, Problem, Table, taskLink, useNow, useRead } from "../parts.js";
import { labelsOf } from "./create.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Runners({ me }) {
  const { value, error, reload } = useRead(() => all("v1/runners", "runners"), [], 3000);
  const now = useNow();
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const act = (/** @type {any} */ runner, /** @type {string} */ action, body = {}) => post(`v1/${runner.name}:${action}`, body).then(reload, setProblem);
  return html`<h1>Runners</h1><${Problem} error=${problem || error} />
    <${Table} rows=${value || []} empty="No runner has registered. Start one with taskyard-runner serve." columns=${[
      ["Runner", (/** @type {any} */ runner) => inert(last(runner.name))],
      ["State", (/** @type {any} */ runner) => html`<span class=${`state-${word(runner.state, "RUNNER_STATE_").toLowerCase()}`}>${word(runner.state, "RUNNER_STATE_").toLowerCase()}</span>`],
      ["In use", (/** @type {any} */ runner) => html`<meter min="0" max=${runner.registration?.capacity || 1} value=${runner.usedCapacity || 0} aria-label="places in use"></meter> ${number(runner.usedCapacity)}/${number(runner.registration?.capacity)}`],
      ["Holds", (/** @type {any} */ runner) => (runner.tasks || []).slice(0, 5).map((/** @type {string} */ name) => html`<a href=${taskLink(name)}>${inert(last(name))}</a> `)],
      ["Kinds", (/** @type {any} */ runner) => (runner.registration?.executionKinds || []).map((/** @type {string} */ kind) => word(kind, "EXECUTION_KIND_").toLowerCase()).join(" ")],
      ["Labels", (/** @type {any} */ runner) => inert(Object.entries({ ...(runner.registration?.labels || {}), ...(runner.labels || {}) }).map((pair) => pair.join("=")).join(" "))],
      ["Last seen", (/** @type {any} */ runner) => `${age(runner.heartbeatTime, now)} ago`],
      ["Version", (/** @type {any} */ runner) => inert(runner.registration?.version)],
      ["", (/** @type {any} */ runner) => me.writes ? html`${runner.drain ? html`<button onClick=${() => act(runner, "undrain")}>Undrain</button>` : html`<button onClick=${() => act(runner, "drain", { drain: { mode: "DRAIN_MODE_FINISH" } })}>Drain</button>`}
        <button onClick=${() => setEdited(runner)}>Labels…</button>` : null],
    ]} />
    ${edited ? html`<${Labels} runner=${edited} onDone=${reload} onClose=${() => setEdited(null)} />` : null}`;
}

/** @param {{runner: any, onDone: () => void, onClose: () => void}} properties */
function Labels({ runner, onDone, onClose }) {
  const [text, setText] = useState(Object.entries(runner.adminLabels || {}).map((pair) => pair.join("=")).join(" "));
  const save = () => call("PATCH", `v1/${runner.name}`, { name: runner.name, adminLabels: labelsOf(text) }, { updateMask: "adminLabels" }).then(onDone);
  return html`<${Confirm} title=${`Labels of ${last(runner.name)}`} action="Save" onConfirm=${save} onClose=${onClose}>
    <label>key=value, separated by spaces <input value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label></${Confirm}>`;
}

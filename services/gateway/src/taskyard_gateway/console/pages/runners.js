// Runners: what they can take, what they hold, and why nothing goes there.
import { all, call, get, post } from "../api.js";
import { html, useState } from "../dom.js";
import { age, inert, last, number, word } from "../format.js";
import { Confirm, Problem, Table, taskLink, useNow, useRead } from "../parts.js";
import { labelsOf } from "./create.js";

// Of the tasks that a runner holds, as many are named.
const HELD = 5;

/** @param {{me: import("../main.js").Me}} properties */
export function Runners({ me }) {
  const { value, error, reload } = useRead(() => all("v1/runners", "runners", { view: "RUNNER_VIEW_FULL" }), [], 3000);
  const now = useNow();
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const [asked, setAsked] = useState("");
  const act = (/** @type {any} */ runner, /** @type {string} */ action, body = {}) => post(`v1/${runner.name}:${action}`, body).then(reload, setProblem);
  return html`<h1>Runners</h1><${Problem} error=${problem || error} />
    <${Table} rows=${value} error=${error} empty="No runner has registered. Start one with taskyard-runner serve." columns=${[
      ["Runner", (/** @type {any} */ runner) => inert(last(runner.name))],
      ["State", (/** @type {any} */ runner) => html`<span class=${`state-${word(runner.state, "RUNNER_STATE_").toLowerCase()}`}>${word(runner.state, "RUNNER_STATE_").toLowerCase()}</span>`],
      ["In use", (/** @type {any} */ runner) => html`<meter min="0" max=${runner.registration?.capacity || 1} value=${runner.usedCapacity || 0} aria-label="places in use"></meter> ${number(runner.usedCapacity)}/${number(runner.registration?.capacity)}`],
      ["Holds", (/** @type {any} */ runner) => html`${(runner.tasks || []).slice(0, HELD).map((/** @type {string} */ name) => html`<a href=${taskLink(name)}>${inert(last(name))}</a> `)}${(runner.tasks || []).length > HELD ? `and ${number(runner.tasks.length - HELD)} more` : ""}`],
      ["Kinds", (/** @type {any} */ runner) => (runner.registration?.executionKinds || []).map((/** @type {string} */ kind) => word(kind, "EXECUTION_KIND_").toLowerCase()).join(" ")],
      ["Labels", (/** @type {any} */ runner) => inert(Object.entries({ ...(runner.registration?.labels || {}), ...(runner.labels || {}) }).map((pair) => pair.join("=")).join(" "))],
      ["Last seen", (/** @type {any} */ runner) => `${age(runner.heartbeatTime, now)} ago`],
      ["Version", (/** @type {any} */ runner) => inert(runner.registration?.version)],
      ["", (/** @type {any} */ runner) => html`${me.writes ? html`${runner.drain ? html`<button onClick=${() => act(runner, "undrain")}>Undrain</button>` : html`<button onClick=${() => act(runner, "drain", { drain: { mode: "DRAIN_MODE_FINISH" } })}>Drain</button>`}
        <button onClick=${() => setEdited(runner)}>Labels…</button>` : null}
        <button aria-pressed=${asked === runner.name ? "true" : "false"} onClick=${() => setAsked(asked === runner.name ? "" : runner.name)}>Why nothing?</button>`],
    ]} />
    ${asked ? html`<${WhyNothing} key=${asked} name=${asked} runner=${(value || []).find((each) => each.name === asked)} />` : null}
    ${edited ? html`<${Labels} runner=${edited} onDone=${reload} onClose=${() => setEdited(null)} />` : null}`;
}

const EXPLAINED = 8;

/** What keeps the newest waiting tasks from one runner. @param {{name: string, runner: any}} properties */
function WhyNothing({ name, runner }) {
  const read = async () => {
    const waiting = (await get("v1/tenants/-/tasks", { filter: "status.phase = PENDING", pageSize: EXPLAINED, view: "TASK_VIEW_NAME" })).tasks || [];
    return Promise.all(waiting.map(async (/** @type {any} */ task) => {
      const answer = await post(`v1/tenants/${task.name.split("/")[1]}/tasks:explain`, { name: task.name });
      const verdict = (answer.runners || []).find((/** @type {any} */ each) => each.runner === name);
      const gate = (answer.gates || []).find((/** @type {any} */ each) => !each.passed && each.gate !== "GATE_RUNNER");
      return { name: task.name, verdict, gate };
    }));
  };
  const { value, error } = useRead(read, [name], 5000);
  const state = word(runner?.state, "RUNNER_STATE_").toLowerCase();
  return html`<section aria-label="why nothing goes there"><h2>Why nothing goes to ${inert(last(name))}</h2><${Problem} error=${error} />
    ${runner ? html`<p>It is ${state}${runner.drain ? ", and takes nothing because it drains" : ""}, with ${number((runner.registration?.capacity || 0) - (runner.usedCapacity || 0))} of ${number(runner.registration?.capacity)} places free.</p>` : null}
    ${value ? html`<${Table} rows=${value} empty="No task waits: there is nothing to run." columns=${[
      ["Waiting task", (/** @type {any} */ row) => html`<a href=${taskLink(row.name)}>${inert(last(row.name))}</a>`],
      ["This runner", (/** @type {any} */ row) => (row.verdict ? html`<span class=${row.verdict.obstacle ? "bad" : "good"}>${row.verdict.obstacle ? "✗" : "✓"}</span> ${inert(row.verdict.message)}` : "not looked at: other gates are closed, or there are too many runners")],
      ["Remedy", (/** @type {any} */ row) => inert(row.verdict?.remedy)],
      ["Other gate", (/** @type {any} */ row) => (row.gate ? inert(row.gate.message) : "")],
    ]} />` : html`<p class="loading">Explaining the newest waiting tasks…</p>`}</section>`;
}

/** @param {{runner: any, onDone: () => void, onClose: () => void}} properties */
function Labels({ runner, onDone, onClose }) {
  const [text, setText] = useState(Object.entries(runner.adminLabels || {}).map((pair) => pair.join("=")).join(" "));
  const save = () => call("PATCH", `v1/${runner.name}`, { name: runner.name, adminLabels: labelsOf(text) }, { updateMask: "adminLabels" }).then(onDone);
  return html`<${Confirm} title=${`Labels of ${last(runner.name)}`} action="Save" onConfirm=${save} onClose=${onClose}>
    <label>key=value, separated by spaces <input value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label></${Confirm}>`;
}

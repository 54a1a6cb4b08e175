// Why a task does or would not run: every gate, every runner, and remedies that one click applies.
import { call, get, post } from "../api.js";
import { html, useState } from "../dom.js";
import { clock, inert, last, word } from "../format.js";
import { Linked, Problem, Table, useRead } from "../parts.js";

/** @param {{me: import("../main.js").Me, subject: {name?: string, spec?: any}, version?: string, tenant?: string}} properties */
export function Explanation({ me, subject, version, tenant }) {
  const parent = subject.name ? subject.name.split("/").slice(0, 2).join("/") : `tenants/${tenant || me.tenant}`;
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const found = useRead(() => post(`v1/${parent}/tasks:explain`, subject), [JSON.stringify(subject), version], 5000);
  const answer = found.value;
  if (!answer) return html`<${Problem} error=${found.error} />`;
  // Where the only gate says what the summary says, once is enough.
  const gates = (answer.gates || []).filter((/** @type {any} */ gate, /** @type {number} */ _, /** @type {any[]} */ all) => all.length > 1 || gate.message !== answer.summary);
  const apply = (/** @type {() => Promise<any>} */ remedy) => remedy().then(found.reload, setProblem);
  return html`<p class=${answer.runnable ? "good" : "note"} role="status"><${Linked} text=${sentence(inert(answer.summary))} /></p>
    <${Problem} error=${problem || found.error} />
    <ul class="gates">${gates.map((/** @type {any} */ gate) => html`<li><span class=${gate.passed ? "good" : "bad"} aria-label=${gate.passed ? "open" : "closed"}>${gate.passed ? "✓" : "✗"}</span>${" "}
      <b>${word(gate.gate, "GATE_").toLowerCase()}</b> <${Linked} text=${inert(gate.message)} /> ${gate.openTime ? `(opens ${clock(gate.openTime)})` : ""}
      ${gate.passed || !gate.remedy ? null : html`<span class="remedy">→ <${Linked} text=${inert(gate.remedy)} /></span>`}
      ${me.writes && !gate.passed ? remedies(me, gate, subject).map(([label, run]) => html` <button onClick=${() => apply(run)}>${label}</button>`) : null}</li>`)}</ul>
    ${(answer.gates || []).length === 1 && answer.runnable ? null : html`<${Table} rows=${answer.runners || []} empty="No runner is registered." key=${(/** @type {any} */ row) => row.runner} columns=${[
      ["Runner", (/** @type {any} */ row) => last(row.runner)],
      ["", (/** @type {any} */ row) => (row.obstacle ? html`<span class="bad">✗</span>` : html`<span class="good">✓</span>`)],
      ["Why", (/** @type {any} */ row) => inert(row.message)],
      ["Remedy", (/** @type {any} */ row) => html`${inert(row.remedy)} ${me.writes && me.admin ? runnerRemedies(row).map(([label, run]) => html`<button onClick=${() => apply(run)}>${label}</button>`) : null}`],
    ]} />`}`;
}

/** @param {string} text */
const sentence = (text) => text && `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** What the API can do about a closed gate. @returns {[string, () => Promise<any>][]} @param {import("../main.js").Me} me @param {any} gate @param {any} subject */
function remedies(me, gate, subject) {
  const kind = word(gate.gate, "GATE_");
  const blocker = gate.blocker || "";
  const patch = (/** @type {Record<string, any>} */ change) => () => call("PATCH", `v1/${blocker}`, { name: blocker, ...change }, { updateMask: Object.keys(change).join(",") });
  if (kind === "PHASE" && subject.name && /paused/i.test(gate.message)) return [["Resume", () => post(`v1/${subject.name}:resume`)]];
  if (kind === "PHASE" && subject.name && /^retry /.test(gate.remedy || "") && !blocker) return [["Retry", () => post(`v1/${subject.name}:retry`)]];
  if (kind === "SLOT" && /\/tasks\//.test(blocker)) return [["Cancel its holder", () => post(`v1/${blocker}:cancel`, { reason: "console" })]];
  if (kind === "PAUSED" && /\/taskTypes\//.test(blocker)) return [["Resume the type's queue", patch({ queuePaused: false })]];
  if (kind === "PAUSED" && me.admin && /suspended/.test(gate.message)) return [["End the suspension", patch({ suspended: false })]];
  if (kind === "PAUSED" && me.admin) return [["Resume the tenant's queue", patch({ queuePaused: false })]];
  if (kind === "TASK_TYPE" && /\/taskTypes\//.test(blocker)) return [["Enable the type", patch({ disabled: false })]];
  if (kind === "QUARANTINE" && me.admin && /quarantines\//.test(blocker)) return [["Release", () => post(`v1/${blocker}:release`)]];
  return [];
}

/** @returns {[string, () => Promise<any>][]} @param {any} verdict */
function runnerRemedies(verdict) {
  const kind = word(verdict.obstacle, "RUNNER_OBSTACLE_");
  if (kind === "DRAINING") return [["Undrain", () => post(`v1/${verdict.runner}:undrain`)]];
  const label = /set its label (\S+) to "([^"]*)"/.exec(verdict.remedy || "");
  if (kind === "REQUIRED" && label) {
    return [[`Set ${label[1]}=${label[2]}`, async () => {
      const { runner } = await get(`v1/${verdict.runner}`);
      const adminLabels = { ...(runner.adminLabels || {}), [label[1]]: label[2] };
      return call("PATCH", `v1/${verdict.runner}`, { name: verdict.runner, adminLabels }, { updateMask: "adminLabels" });
    }]];
  }
  return [];
}

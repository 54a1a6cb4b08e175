// The doctor: every invariant recomputed, and repairs.
import { all, post, postInBackground } from "../api.js";
import { html, useState } from "../dom.js";
import { clock, inert, last, number, word } from "../format.js";
import { Confirm, Problem, Table, taskLink, useRead } from "../parts.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Doctor({ me }) {
  const { value, error, reload } = useRead(() => postInBackground("v1/doctor:run"), []);
  const [asked, setAsked] = useState("");
  const [done, setDone] = useState("");
  const repair = async () => {
    const answer = await postInBackground("v1/doctor:run", { checks: [asked], repair: true });
    const finding = (answer.findings || [])[0] || {};
    setDone(`${asked}: ${number(finding.repairedCount)} repaired. ${finding.message || ""}`);
    reload();
  };
  return html`<h1>Doctor</h1><${Problem} error=${error} />
    ${value ? html`<p class=${value.healthy ? "good" : "problem"} role="status">${value.healthy ? "✓ Every invariant holds." : "✗ Some invariants do not hold."} <button onClick=${reload}>Examine again</button></p>` : html`<p class="empty" role="status">Examining every invariant…</p>`}
    ${done ? html`<p role="status">${inert(done)}</p>` : null}
    <${Table} rows=${value?.findings || []} empty="" key=${(/** @type {any} */ row) => row.check} columns=${[
      ["Check", (/** @type {any} */ row) => row.check],
      ["", (/** @type {any} */ row) => (Number(row.count || 0) ? html`<span class="bad">✗ ${word(row.severity, "DOCTOR_SEVERITY_").toLowerCase()}</span>` : html`<span class="good">✓</span>`)],
      ["Found", (/** @type {any} */ row) => number(row.count)],
      ["Message", (/** @type {any} */ row) => inert(row.message)],
      ["Examples", (/** @type {any} */ row) => inert((row.examples || []).join(" "))],
      ["", (/** @type {any} */ row) => me.writes && Number(row.count || 0) ? html`<button onClick=${() => setAsked(row.check)}>Repair…</button>` : null],
    ]} />
    ${asked ? html`<${Confirm} title=${`Repair ${asked}`} action="Repair" onConfirm=${repair} onClose=${() => setAsked("")}><p>Only what can safely be repaired is changed; each repair is in the audit trail.</p></${Confirm}>` : null}
    <${Quarantines} me=${me} />`;
}

/** Specs that took too many runners down, until somebody releases them. @param {{me: import("../main.js").Me}} properties */
function Quarantines({ me }) {
  const { value, error, reload } = useRead(() => all("v1/quarantines", "quarantines", { parent: "tenants/-" }), [], 10_000);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const release = (/** @type {any} */ row) => post(`v1/${row.name}:release`).then(() => { setProblem(null); reload(); }, setProblem);
  return html`<section aria-label="quarantines"><h2>Quarantines</h2><${Problem} error=${problem || error} />
    <${Table} rows=${value} error=${error} empty="No spec is in quarantine." columns=${[
      ["Tenant", (/** @type {any} */ row) => row.name.split("/")[1]],
      ["Type", (/** @type {any} */ row) => inert(row.taskType)],
      ["Runners lost", (/** @type {any} */ row) => number(row.runnerLossCount)],
      ["Since", (/** @type {any} */ row) => clock(row.createTime)],
      ["Example", (/** @type {any} */ row) => (row.exampleTask ? html`<a href=${taskLink(row.exampleTask)}>${inert(last(row.exampleTask))}</a>` : "")],
      ["", (/** @type {any} */ row) => (me.writes ? html`<button onClick=${() => release(row)}>Release</button>` : null)],
    ]} /></section>`;
}

// The doctor: every invariant recomputed, and repairs.
import { post } from "../api.js";
import { html, useState } from "../dom.js";
import { inert, number, word } from "../format.js";
import { Confirm, Problem, Table, useRead } from "../parts.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Doctor({ me }) {
  const { value, error, reload } = useRead(() => post("v1/doctor:run"), []);
  const [asked, setAsked] = useState("");
  const [done, setDone] = useState("");
  const repair = async () => {
    const answer = await post("v1/doctor:run", { checks: [asked], repair: true });
    const finding = (answer.findings || [])[0] || {};
    setDone(`${asked}: ${number(finding.repairedCount)} repaired. ${finding.message || ""}`);
    reload();
  };
  return html`<h1>Doctor</h1><${Problem} error=${error} />
    ${value ? html`<p class=${value.healthy ? "good" : "problem"} role="status">${value.healthy ? "✓ Every invariant holds." : "✗ Some invariants do not hold."} <button onClick=${reload}>Examine again</button></p>` : html`<p class="loading">Examining…</p>`}
    ${done ? html`<p role="status">${inert(done)}</p>` : null}
    <${Table} rows=${value?.findings || []} empty="No check has run." key=${(/** @type {any} */ row) => row.check} columns=${[
      ["Check", (/** @type {any} */ row) => row.check],
      ["", (/** @type {any} */ row) => (Number(row.count || 0) ? html`<span class="bad">✗ ${word(row.severity, "DOCTOR_SEVERITY_").toLowerCase()}</span>` : html`<span class="good">✓</span>`)],
      ["Found", (/** @type {any} */ row) => number(row.count)],
      ["Message", (/** @type {any} */ row) => inert(row.message)],
      ["Examples", (/** @type {any} */ row) => inert((row.examples || []).join(" "))],
      ["", (/** @type {any} */ row) => me.writes && Number(row.count || 0) ? html`<button onClick=${() => setAsked(row.check)}>Repair…</button>` : null],
    ]} />
    ${asked ? html`<${Confirm} title=${`Repair ${asked}`} action="Repair" onConfirm=${repair} onClose=${() => setAsked("")}><p>Only what can safely be repaired is changed; each repair is in the audit trail.</p></${Confirm}>` : null}`;
}

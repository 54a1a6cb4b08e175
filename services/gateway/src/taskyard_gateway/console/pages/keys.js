// API keys: made, shown once, revoked.
import { all, post } from "../api.js";
import { html, useState } from "../dom.js";
import { clock, inert, last, word } from "../format.js";
import { Confirm, Problem, Table, useRead } from "../parts.js";

/** @param {{me: import("../main.js").Me}} properties */
export function Keys({ me }) {
  const { value, error, reload } = useRead(() => all("v1/apiKeys", "apiKeys"), []);
  const [made, setMade] = useState("");
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const create = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const answer = await post("v1/apiKeys", { apiKey: { kind: "PRINCIPAL_KIND_TENANT", tenant: form.get("tenant") || me.tenant, description: form.get("description"), readOnly: form.get("readOnly") === "on" } });
      setMade(answer.secret);
      reload();
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<h1>Keys</h1><${Problem} error=${problem || error} />
    ${me.writes ? html`<form class="toolbar" onSubmit=${create}>${me.admin ? html`<label>Tenant <input name="tenant" value=${me.tenant} /></label>` : null}
      <label>For what <input name="description" required /></label><label><input type="checkbox" name="readOnly" /> read-only</label><button class="primary">Create a key</button></form>` : null}
    ${made ? html`<p class="note" role="status">Store it now, it cannot be shown again: <code>${made}</code> <button onClick=${() => setMade("")}>Done</button></p>` : null}
    <${Table} rows=${value || []} empty="None." columns=${[
      ["Key", (/** @type {any} */ key) => last(key.name)],
      ["Kind", (/** @type {any} */ key) => word(key.kind, "PRINCIPAL_KIND_").toLowerCase() + (key.readOnly ? ", read-only" : "")],
      ["Tenant", (/** @type {any} */ key) => key.tenant || ""],
      ["For", (/** @type {any} */ key) => inert(key.description)],
      ["Created", (/** @type {any} */ key) => clock(key.createTime)],
      ["Ends", (/** @type {any} */ key) => (key.revokeTime ? `revoked ${clock(key.revokeTime)}` : clock(key.expireTime) || "never")],
      ["", (/** @type {any} */ key) => me.writes && !key.revokeTime && key.name !== me.key ? html`<button onClick=${() => setAsked(key)}>Revoke…</button>` : null],
    ]} />
    ${asked ? html`<${Confirm} title=${`Revoke ${last(asked.name)}`} action="Revoke" onConfirm=${() => post(`v1/${asked.name}:revoke`).then(reload)} onClose=${() => setAsked(null)}><p>Whoever uses it is locked out within seconds, for good.</p></${Confirm}>` : null}`;
}

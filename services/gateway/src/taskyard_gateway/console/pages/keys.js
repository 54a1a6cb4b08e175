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
      const kind = String(form.get("kind") || "TENANT");
      // A key may not outlive the one that makes it, as that of a session by a one-time link.
      const ends = [me.expires, form.get("days") && new Date(Date.now() + Number(form.get("days")) * 86400e3).toISOString()].filter(Boolean).sort();
      const apiKey = {
        kind: `PRINCIPAL_KIND_${kind}`, ...(kind === "TENANT" ? { tenant: form.get("tenant") || me.tenant } : {}), description: form.get("description"), readOnly: form.get("readOnly") === "on",
        ...(ends.length ? { expireTime: ends[0] } : {}),
      };
      const answer = await post("v1/apiKeys", { apiKey });
      setProblem(null);
      setMade(answer.secret);
      reload();
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<h1>Keys</h1><${Problem} error=${problem || error} />
    ${me.writes ? html`<form class="toolbar" onSubmit=${create}>${me.admin ? html`<label>Kind <select name="kind"><option value="TENANT">tenant</option><option value="ADMIN">administrator</option></select></label><label>Tenant <input name="tenant" value=${me.tenant} /></label>` : null}
      <label>For what <input name="description" required /></label><label>Ends after days <input class="short" name="days" type="number" min="1" placeholder="never" /></label><label><input type="checkbox" name="readOnly" /> read-only</label><button class="primary">Create a key</button></form>
      ${me.expires ? html`<p class="empty">You are signed in until ${clock(me.expires)}: keys that you make end then too. Sign in with a key to make lasting ones.</p>` : null}` : null}
    ${made ? html`<p class="note" role="status">Store it now, it cannot be shown again: <code>${made}</code> <button onClick=${() => setMade("")}>Done</button></p>` : null}
    <${Table} rows=${value} error=${error} empty="None." columns=${[
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

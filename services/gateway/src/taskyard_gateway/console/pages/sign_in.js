// Exchanges a key for the browser's session.
import { call } from "../api.js";
import { html, useState } from "../dom.js";
import { Problem } from "../parts.js";

/** @param {{error: any, onSignedIn: () => Promise<void>}} properties */
export function SignIn({ error, onSignedIn }) {
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const key = String(new FormData(event.target).get("key") || "").trim();
    try {
      await call("POST", "session", { key });
      await onSignedIn();
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<main class="sign-in"><h1>Taskyard</h1>
    <form onSubmit=${submit}><label for="key">API key</label>
      <input id="key" name="key" type="password" autocomplete="off" required placeholder="ty_…" />
      <button class="primary">Sign in</button></form>
    <${Problem} error=${problem || error} />
    <p>On the machine of <code>taskyard up</code>, <code>taskyard open</code> signs this browser in. A key is made by <code>taskyard keys create</code>.</p></main>`;
}

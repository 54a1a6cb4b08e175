// A new task: by kind or by task type, with a dry run that explains where it would run.
import { all, get, post } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { bytesText, inert, last } from "../format.js";
import { Problem, taskLink, useRead } from "../parts.js";
import { SchemaForm } from "../schema_form.js";
import { go } from "../router.js";
import { Explanation } from "./explain.js";

const KINDS = ["command", "script", "container", "function", "wasm", "external"];
const MODULE_BYTES = 2 * 1024 * 1024;

/** @param {{me: import("../main.js").Me, route: import("../router.js").Route}} properties */
export function Create({ me, route }) {
  const [form, setForm] = useState(/** @type {any} */ (cloned() || { tenant: route.query.get("tenant") || me.tenant, kind: "command", program: "echo hello", script: "echo hello", interpreter: "INTERPRETER_BASH", image: "", type: route.query.get("type") || "", payload: {}, labels: "", priority: "", timeout: "", retries: "" }));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [dry, setDry] = useState(/** @type {any} */ (null));
  const types = useRead(async () => {
    const own = await all(`v1/tenants/${form.tenant}/taskTypes`, "taskTypes").catch(() => []);
    const shared = form.tenant === "system" ? [] : await all("v1/tenants/system/taskTypes", "taskTypes").catch(() => []);
    return [...own, ...shared.filter((each) => !own.some((type) => last(type.name) === last(each.name)))];
  }, [form.tenant]);
  const listed = (types.value || []).find((/** @type {any} */ type) => last(type.name) === form.type);
  // A list leaves schemas out.
  const whole = useRead(() => (listed ? get(`v1/${listed.name}`) : Promise.resolve(null)), [listed?.name]);
  const chosen = listed && whole.value?.taskType?.name === listed.name ? whole.value.taskType : listed;
  const set = (/** @type {Record<string, any>} */ changes) => { setForm((/** @type {any} */ before) => ({ ...before, ...changes })); setDry(null); };
  const field = (/** @type {string} */ name) => ({ value: form[name], onInput: (/** @type {any} */ event) => set({ [name]: event.target.value }) });
  const check = () => { setProblem(null); try { setDry(specOf(form, chosen)); } catch (error) { setProblem(error); } };
  const choose = async (/** @type {any} */ event) => {
    const file = event.target.files[0];
    const fits = file && file.size <= MODULE_BYTES;
    setProblem(file && !fits ? new Error(`${file.name} has ${file.size} bytes; a module has at most ${MODULE_BYTES}. A larger one is named by its path on the runner, with the API.`) : null);
    set({ module: fits ? base64(new Uint8Array(await file.arrayBuffer())) : "" });
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const task = { metadata: { labels: labelsOf(form.labels) }, spec: specOf(form, chosen) };
      const answer = await post(`v1/tenants/${form.tenant}/tasks?requestId=${crypto.randomUUID()}${form.id ? `&taskId=${encodeURIComponent(form.id)}` : ""}`, task);
      go(taskLink(answer.task.name));
    } catch (error) {
      setProblem(error);
    }
  };
  useEffect(() => { if (chosen?.execution) set({ kind: "" }); }, [chosen?.name]);
  if (!me.writes) return html`<h1>Create a task</h1><p class="empty">Your key may only read.</p>`;
  return html`<h1>Create a task</h1><div class="beside"><form class="create" onSubmit=${submit}>
    ${me.admin ? html`<label>Tenant <input required ...${field("tenant")} /></label>` : null}
    <label>Task type <select value=${form.type} onChange=${(/** @type {any} */ event) => set({ type: event.target.value, payload: {} })}><option value="">none</option>${(types.value || []).map((/** @type {any} */ type) => html`<option value=${last(type.name)}>${last(type.name)}</option>`)}</select></label>
    ${chosen?.execution && !chosen.allowExecutionOverride ? null : html`<label>Kind <select value=${form.kind} onChange=${(/** @type {any} */ event) => set({ kind: event.target.value })}>${(chosen?.execution ? ["", ...KINDS] : KINDS).map((kind) => html`<option value=${kind}>${kind || "as the type says"}</option>`)}</select></label>`}
    ${form.kind === "command" || form.kind === "container" ? html`<label>Command line <input ...${field("program")} placeholder='echo "hello there"' /></label>` : null}
    ${form.kind === "function" ? html`<label>Function <input required=${!form.type} ...${field("function")} placeholder=${form.type || "name that a worker has registered"} /></label>` : null}
    ${form.kind === "wasm" ? html`<label>Module, at most 2 MiB <input type="file" accept=".wasm,application/wasm" required onChange=${choose} /></label>
      <label>Arguments <input ...${field("arguments")} /></label>` : null}
    ${form.kind === "container" ? html`<label>Image <input required ...${field("image")} /></label>` : null}
    ${form.kind === "script" ? html`<label>Interpreter <select value=${form.interpreter} onChange=${(/** @type {any} */ event) => set({ interpreter: event.target.value })}>${["BASH", "PYTHON", "NODE"].map((each) => html`<option value=${`INTERPRETER_${each}`}>${each.toLowerCase()}</option>`)}</select></label>
      <label>Script <textarea rows="6" ...${field("script")}></textarea></label>` : null}
    <fieldset><legend>Payload</legend><${SchemaForm} schema=${schemaOf(chosen)} value=${form.payload} onChange=${(/** @type {any} */ payload) => set({ payload })} /></fieldset>
    <label>Id <input ...${field("id")} placeholder="made by the server" /></label>
    <label>Labels <input ...${field("labels")} placeholder="team=docs urgent=yes" /></label>
    <details><summary>Priority, retries, timeout</summary><label>Priority <input type="number" min="0" max="1000" ...${field("priority")} /></label>
    <label>Retries <input type="number" min="0" ...${field("retries")} /></label>
    <label>Timeout of an attempt (s) <input type="number" min="1" ...${field("timeout")} /></label></details>
    <${Problem} error=${problem || types.error || whole.error} />
    <div class="actions"><button type="button" onClick=${check}>Dry run: where would it run?</button><button class="primary">Create</button></div></form>
    ${dry ? html`<section aria-label="dry run"><h2>Dry run</h2><${Explanation} me=${me} subject=${{ spec: dry }} tenant=${form.tenant} /></section>` : null}</div>`;
}

/** @param {any} type */
function schemaOf(type) {
  try {
    return type?.payloadSchema ? JSON.parse(bytesText(type.payloadSchema)) : null;
  } catch {
    return null;
  }
}

/** @param {string} text */
export const labelsOf = (text) => Object.fromEntries(text.split(/\s+/).filter(Boolean).map((pair) => [pair.split("=")[0], pair.split("=").slice(1).join("=")]));

/** Words of a command line, with quotes as in a shell. @param {string} text */
export function words(text) {
  const found = [];
  for (const match of text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)) found.push(match[1] !== undefined ? match[1].replace(/\\(.)/g, "$1") : match[2] ?? match[3]);
  return found;
}

/** @param {any} form @param {any} type */
function specOf(form, type) {
  const [program, ...args] = words(form.program || "");
  const executions = /** @type {Record<string, () => any>} */ ({
    command: () => ({ command: { program, args } }),
    script: () => ({ script: { interpreter: form.interpreter, body: base64(new TextEncoder().encode(form.script)) } }),
    container: () => ({ container: { image: form.image, command: words(form.program) } }),
    function: () => ({ function: form.function ? { function: form.function } : {} }),
    wasm: () => ({ wasm: { inline: form.module, args: words(form.arguments || "") } }),
    external: () => ({ external: {} }),
  });
  const spec = /** @type {any} */ ({ taskType: form.type });
  if (form.spec) Object.assign(spec, form.spec);
  if (form.kind === "wasm" && !form.module) throw new Error("Choose the file of the module.");
  if (form.kind) spec.execution = executions[form.kind]();
  if (Object.keys(form.payload || {}).length) spec.payload = { json: form.payload };
  if (form.priority !== "") spec.priority = Number(form.priority);
  if (form.timeout) spec.attemptTimeout = `${form.timeout}s`;
  if (form.retries) spec.retry = { maxRetries: Number(form.retries), restart: "RESTART_POLICY_ON_FAILURE" };
  if (type === undefined && !spec.taskType) delete spec.taskType;
  return spec;
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = "";
  // In pieces: a call takes only so many arguments.
  for (let from = 0; from < bytes.length; from += 8192) text += String.fromCharCode(...bytes.subarray(from, from + 8192));
  return btoa(text);
}

/** The form of the task that "Clone" has left. */
function cloned() {
  const text = sessionStorage.getItem("clone");
  if (!text) return null;
  sessionStorage.removeItem("clone");
  const task = JSON.parse(text);
  const { payload, execution, taskType = "", priority = "", ...rest } = task.spec || {};
  const command = execution?.command;
  return {
    tenant: task.name.split("/")[1], kind: command ? "command" : "", spec: { ...rest, ...(command ? {} : { execution }) }, type: taskType,
    program: command ? [command.program, ...(command.args || [])].map((each) => (/[\s"']/.test(each) ? JSON.stringify(each) : each)).join(" ") : "",
    payload: payload?.json || {}, labels: inert(Object.entries(task.metadata?.labels || {}).map((pair) => pair.join("=")).join(" ")), priority, timeout: "", retries: "", script: "", image: "", interpreter: "INTERPRETER_BASH",
  };
}

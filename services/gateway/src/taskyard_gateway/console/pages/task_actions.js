// What can be done with one task: cancel, pause, resume, retry, edit while queued, clone, delete.
import { call, post } from "../api.js";
import { html, useState } from "../dom.js";
import { phaseOf, TERMINAL } from "../format.js";
import { Confirm, Problem } from "../parts.js";
import { go, link } from "../router.js";

/** @param {{task: any, onDone: () => void}} properties */
export function Actions({ task, onDone }) {
  const [asked, setAsked] = useState("");
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const phase = phaseOf(task);
  const now = (/** @type {string} */ action) => post(`v1/${task.name}:${action}`).then(() => { setProblem(null); onDone(); }, setProblem);
  const ended = TERMINAL.has(phase);
  const buttons = [
    ["Cancel…", !ended, () => setAsked("cancel")],
    ["Pause", !ended && phase !== "PAUSED", () => now("pause")],
    ["Resume", phase === "PAUSED", () => now("resume")],
    ["Retry", ended && phase !== "SUCCEEDED", () => now("retry")],
    ["Edit…", phase === "PENDING" || phase === "PAUSED", () => setAsked("edit")],
    ["Clone…", true, () => { sessionStorage.setItem("clone", JSON.stringify(task)); go(link(["create"])); }],
    ["Delete…", ended, () => setAsked("delete")],
  ];
  const remove = () => call("DELETE", `v1/${task.name}`).then(() => go(link(["tasks"])));
  return html`<div class="toolbar">${buttons.filter(([, fits]) => fits).map(([label, , run]) => html`<button onClick=${run}>${label}</button>`)}</div>
    <${Problem} error=${problem} />
    ${asked === "cancel" ? html`<${Confirm} title="Cancel this task" action="Cancel the task" onConfirm=${() => post(`v1/${task.name}:cancel`, { reason: "console" }).then(onDone)} onClose=${() => setAsked("")}><p>A running program is asked to stop, and killed after its grace period.</p></${Confirm}>` : null}
    ${asked === "delete" ? html`<${Confirm} title="Delete this task" action="Delete the task" onConfirm=${remove} onClose=${() => setAsked("")}><p>Its output, runs and checkpoints go with it.</p></${Confirm}>` : null}
    ${asked === "edit" ? html`<${Edit} task=${task} onDone=${onDone} onClose=${() => setAsked("")} />` : null}`;
}

/** Priority and labels by fields; before the first start the whole spec, as JSON. @param {{task: any, onDone: () => void, onClose: () => void}} properties */
function Edit({ task, onDone, onClose }) {
  const [priority, setPriority] = useState(String(task.spec?.priority ?? ""));
  const [labels, setLabels] = useState(Object.entries(task.metadata?.labels || {}).map((pair) => pair.join("=")).join("\n"));
  const { taskType, slot, entity, priority: _, ...open } = task.spec || {};
  const before = JSON.stringify(open, null, 1);
  const [spec, setSpec] = useState(before);
  const fresh = !task.status?.attempt;
  const save = async () => {
    const changed = {
      name: task.name,
      metadata: { resourceVersion: task.metadata.resourceVersion, labels: Object.fromEntries(labels.split("\n").filter(Boolean).map((line) => [line.split("=")[0], line.split("=").slice(1).join("=")])) },
      spec: { ...(spec === before ? {} : JSON.parse(spec)), ...(priority === "" ? {} : { priority: Number(priority) }) },
    };
    const fields = ["metadata.labels", ...(priority === "" ? [] : ["spec.priority"]), ...(spec === before ? [] : [...new Set([...Object.keys(open), ...Object.keys(JSON.parse(spec))])].map((field) => `spec.${field}`))];
    await call("PATCH", `v1/${task.name}`, changed, { updateMask: fields.join(",") });
    onDone();
  };
  return html`<${Confirm} title="Edit this task" action="Save" onConfirm=${save} onClose=${onClose}>
    <label>Priority (0 to 1000) <input type="number" min="0" max="1000" value=${priority} onInput=${(/** @type {any} */ event) => setPriority(event.target.value)} /></label>
    <label>Labels, one key=value a line <textarea rows="4" value=${labels} onInput=${(/** @type {any} */ event) => setLabels(event.target.value)}></textarea></label>
    ${fresh ? html`<details><summary>The rest of the spec, as JSON</summary><textarea rows="12" aria-label="spec" value=${spec} onInput=${(/** @type {any} */ event) => setSpec(event.target.value)}></textarea></details>` : null}</${Confirm}>`;
}

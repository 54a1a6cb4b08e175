// Pieces that several pages show.
import { html, useEffect, useRef, useState } from "./dom.js";
import { exactly, inert, last } from "./format.js";
import { link } from "./router.js";

const MARKS = { SUCCEEDED: "✓", FAILED: "✗", EXHAUSTED: "✗", TIMED_OUT: "⏱", CANCELLED: "⊘", RUNNING: "▶", SCHEDULED: "▷", PENDING: "…", PAUSED: "‖", REDISTRIBUTING: "↻" };

/** @param {{phase: string}} properties */
export const Phase = ({ phase }) =>
  html`<span class=${`phase phase-${phase.toLowerCase()}`}><span aria-hidden="true">${MARKS[/** @type {keyof typeof MARKS} */ (phase)] || "?"}</span> ${phase}</span>`;

/** @param {{task: any}} properties */
export const TaskLink = ({ task }) => html`<a href=${taskLink(task.name)}>${inert(last(task.name))}</a>`;
/** @param {string} name tenants/{tenant}/tasks/{task} */
export const taskLink = (name) => link(["tasks", name.split("/")[1], last(name)]);
/** The page of a task, group or schedule. @param {string} name tenants/{tenant}/{collection}/{id} */
export const nameLink = (name) => link([name.split("/")[2], name.split("/")[1], last(name)]);

/** Text with the tasks that it names as links. @param {{text: string}} properties */
export const Linked = ({ text }) =>
  text.split(/(tenants\/[\w.-]+\/tasks\/[\w.-]*\w)/).map((part, index) => (index % 2 ? html`<a href=${taskLink(part)}>${last(part)}</a>` : part));

/** @param {{error: any}} properties */
export const Problem = ({ error }) =>
  error ? html`<div class="problem" role="alert"><strong>${error.reason || "Error"}</strong> ${inert(error.message)}
    ${(error.violations || []).map((/** @type {any} */ each) => html`<div>${inert(each.field)}: ${inert(each.description)}</div>`)}</div>` : null;

/** @param {{points: number[], label: string}} properties */
export function Sparkline({ points, label }) {
  const top = Math.max(1, ...points);
  const step = 240 / Math.max(1, points.length - 1);
  const line = points.map((value, index) => `${(index * step).toFixed(1)},${(46 - (value / top) * 42).toFixed(1)}`).join(" ");
  return html`<svg class="sparkline" viewBox="0 0 240 50" role="img" aria-label=${label} preserveAspectRatio="none">
    <polygon points=${`0,50 ${line} 240,50`} /><polyline points=${line} fill="none" vector-effect="non-scaling-stroke" /></svg>`;
}

/** @param {{percent: number | undefined, message?: string}} properties */
export const Progress = ({ percent, message }) =>
  percent === undefined ? null : html`<span class="progress"><progress max="100" value=${percent} aria-label="progress"></progress> ${Math.round(percent)}% ${inert(message || "")}</span>`;

/**
 * A table: columns are [title, cell(row)]. Rows that are not read yet are undefined.
 * @param {{columns: [string, (row: any) => any][], rows: any[] | undefined, error?: any, empty: string, key?: (row: any) => string}} properties
 */
export const Table = ({ columns, rows, error, empty, key }) =>
  !rows
    ? error ? null : html`<p class="loading">Loading…</p>`
    : rows.length === 0
    ? html`<p class="empty">${empty}</p>`
    : html`<div class="scroll" tabindex="0" role="region" aria-label="table"><table>
        <thead><tr>${columns.map(([title]) => html`<th scope="col">${title}</th>`)}</tr></thead>
        <tbody>${rows.map((row) => html`<tr key=${key ? key(row) : row.name}>${columns.map(([title, cell]) => html`<td data-title=${title}>${cell(row)}</td>`)}</tr>`)}</tbody>
      </table></div>`;

/**
 * A dialog that asks before something is changed.
 * @param {{title: string, children?: any, action: string, disabled?: boolean, onConfirm: () => Promise<any>, onClose: () => void}} properties
 */
export function Confirm({ title, children, action, disabled, onConfirm, onClose }) {
  const dialog = useRef(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  // Closing it, instead of leaving it out, gives the focus back to the button that opened it.
  const close = () => dialog.current?.close();
  const confirm = async () => {
    setBusy(true);
    try {
      await onConfirm();
      close();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} onClose=${onClose} aria-label=${title}>
    <h2>${title}</h2>${children}<${Problem} error=${error} />
    <div class="actions"><button onClick=${close}>Keep it as it is</button>
      <button class="primary" disabled=${busy || disabled} onClick=${confirm}>${busy ? "Working…" : action}</button></div>
  </dialog>`;
}

/**
 * A value that is read once and again with `reload`; `refresh` repeats it while the page is visible.
 *
 * One call at a time: a reload during a call is remembered and made behind it, so that answers which take longer than
 * the time between reloads are still shown.
 * @template T @param {() => Promise<T>} read @param {any[]} inputs @param {number} [refresh] milliseconds
 * @returns {{value: T | undefined, error: any, reload: () => void}}
 */
export function useRead(read, inputs, refresh) {
  const [state, setState] = useState(/** @type {any} */ ({ value: undefined, error: null }));
  const newest = useRef(read);
  newest.current = read;
  const again = useRef(() => {});
  useEffect(() => {
    let current = true;
    let busy = false;
    let asked = false;
    const run = async () => {
      if (busy) { asked = true; return; }
      busy = true;
      do {
        asked = false;
        try {
          const value = await newest.current();
          if (current) setState({ value, error: null });
        } catch (error) {
          if (current) setState((/** @type {any} */ before) => ({ value: before.value, error }));
        }
      } while (asked && current);
      busy = false;
    };
    again.current = run;
    run();
    return () => { current = false; };
  }, inputs);
  useEffect(() => {
    if (!refresh) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && again.current(), refresh);
    return () => clearInterval(timer);
  }, [refresh]);
  return { ...state, reload: () => again.current() };
}

/** The time, again every second. */
export function useNow() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Show a value that may hold secrets, byte for byte and only when asked to. @param {{label: string, text: () => string}} properties */
export function Hidden({ label, text }) {
  const [shown, setShown] = useState(false);
  return shown
    ? html`<pre class="value" tabindex="0">${exactly(text()).map((piece, index) => (index % 2 ? html`<span class="odd" title="characters that are not shown as they are">${piece}</span>` : piece))}</pre><button onClick=${() => setShown(false)}>Hide</button>`
    : html`<button onClick=${() => setShown(true)}>Show ${label}</button>`;
}

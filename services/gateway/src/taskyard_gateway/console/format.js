// How values read: times, durations, sizes, phases, and text that came from a task.

export const PHASES = ["PENDING", "SCHEDULED", "RUNNING", "PAUSED", "REDISTRIBUTING", "SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED", "EXHAUSTED"];
export const TERMINAL = new Set(["SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED", "EXHAUSTED"]);

/** An enum value without its prefix. @param {string | undefined} value @param {string} prefix */
export const word = (value, prefix) => (value || "").replace(prefix, "");
/** @param {any} task */
export const phaseOf = (task) => word(task?.status?.phase, "TASK_PHASE_");
/** The last segment of a resource name. @param {string | undefined} name */
export const last = (name) => (name || "").split("/").pop() || "";
/** @param {string} name */
export const tenantOf = (name) => name.split("/")[1] || "";

/** @param {number} milliseconds */
export function duration(milliseconds) {
  if (!Number.isFinite(milliseconds)) return "";
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)}s`;
  if (seconds < 3600) return both(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86400) return both(seconds / 3600, "h", (seconds % 3600) / 60, "m");
  return both(seconds / 86400, "d", (seconds % 86400) / 3600, "h");
}

/** Two units, the second unless it is none. @param {number} large @param {string} unit @param {number} small @param {string} part */
const both = (large, unit, small, part) => `${Math.floor(large)}${unit}${Math.floor(small) ? ` ${Math.floor(small)}${part}` : ""}`;

/** A protobuf duration ("1.5s") in milliseconds. @param {string | undefined} text */
export const fromDuration = (text) => (text ? parseFloat(text) * 1000 : NaN);
/** @param {string | undefined} time @param {number} now */
export const age = (time, now = Date.now()) => (time ? duration(now - Date.parse(time)) : "");

/** @param {string | undefined} time */
export function clock(time) {
  if (!time) return "";
  const when = new Date(time);
  const today = when.toDateString() === new Date().toDateString();
  return today ? when.toLocaleTimeString() : when.toLocaleString();
}

/** How long a run or a task took, or has taken so far. @param {any} times @param {number} now */
export function took(times, now = Date.now()) {
  if (!times?.startTime) return "";
  return duration((times.endTime ? Date.parse(times.endTime) : now) - Date.parse(times.startTime));
}

/** @param {number | string | undefined} bytes */
export function size(bytes) {
  let left = Number(bytes || 0);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (left < 1024) return `${left.toFixed(left < 10 && unit !== "B" ? 1 : 0)} ${unit}`;
    left /= 1024;
  }
  return `${left.toFixed(1)} TiB`;
}

/** @param {number | string | undefined} count */
export const number = (count) => Number(count || 0).toLocaleString("en-US");

// Control and format characters (bidirectional ones, zero widths, tags), and letters that are drawn as nothing.
const ODD = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\uffa0]/gu;
/** @param {string} text */
const escaped = (text) => text.replace(ODD, (character) => (/[\t\n]/.test(character) ? character : `\\u${/** @type {number} */ (character.codePointAt(0)).toString(16).padStart(4, "0")}`));

/**
 * Text that somebody else wrote, with control, zero-width and bidirectional characters made visible: they could
 * hide or reorder what a reader sees. Colours of a terminal (ANSI) are left out.
 * @param {any} value
 */
export function inert(value) {
  return escaped(String(value ?? "").replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, ""));
}

// More than so many elements make a page slow.
const MOST_MARKED = 10_000;
/**
 * The same with nothing left out: every second piece is made of such characters, made visible, so that a page can tell
 * them from text that only looks so.
 * @param {string} text @returns {string[]}
 */
export function exactly(text) {
  const pieces = text.split(new RegExp(`((?:(?![\\t\\n])${ODD.source})+)`, "u"));
  return pieces.length > MOST_MARKED ? [escaped(text)] : pieces.map(escaped);
}

/** The details of an audit event, in one line. @param {any} details */
export function facts(details) {
  const { from_phase: from, to_phase: to, ...rest } = details || {};
  const values = Object.entries(rest).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return inert([from ? `${from} → ${to}` : to, ...values].filter(Boolean).join(" · "));
}

/** What a spec runs, in one line. @param {any} spec */
export function what(spec) {
  const execution = spec?.execution || {};
  if (execution.command) return inert([execution.command.program, ...(execution.command.args || [])].join(" "));
  if (execution.script) return `${word(execution.script.interpreter, "INTERPRETER_").toLowerCase()} script`;
  if (execution.container) return inert(execution.container.image);
  if (execution.wasm) return "wasm module";
  if (execution.function) return `function ${inert(execution.function.function || spec.taskType)}`;
  if (execution.external) return "external";
  return inert(spec?.taskType || "");
}

/** Bytes of base64, as text if they are UTF-8. @param {string} encoded */
export function bytesText(encoded) {
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  }
}

// The newest tasks that match a filter, kept current by events, bounded in rows and in calls.
import { get } from "../api.js";
import { useEffect, useRef, useState } from "../dom.js";
import { live } from "../live.js";

export const ROWS = 100;
// Rows change in place at most this often; the list is read again at most this often, and less often if that is slow.
const PAINT_MS = 500;
const READ_MS = 2000;

/**
 * @param {string} parent tenants/{tenant} or tenants/- @param {string} filter @param {number} [rows]
 * @returns {{tasks: any[], next: string, error: any, ready: boolean, pending: number, reload: () => void, more: () => Promise<void>}}
 */
export function useTasks(parent, filter, rows = ROWS) {
  const [state, setState] = useState(/** @type {any} */ ({ tasks: [], next: "", error: null, ready: false }));
  const [pending, setPending] = useState(0);
  const shown = useRef(/** @type {any[]} */ ([]));
  shown.current = state.tasks;
  const again = useRef(() => {});
  const page = (pageToken = "") => get(`v1/${parent}/tasks`, { filter, pageSize: rows, pageToken });
  useEffect(() => {
    let current = true;
    let busy = false;
    let asked = false;
    let readAt = 0;
    let pause = READ_MS;
    const read = async () => {
      if (busy) { asked = true; return; }
      busy = true;
      do {
        asked = false;
        readAt = performance.now();
        try {
          const found = await page();
          if (current) { setState({ tasks: found.tasks || [], next: found.nextPageToken || "", error: null, ready: true }); setPending(0); }
        } catch (error) {
          if (current) setState((/** @type {any} */ before) => ({ ...before, error, ready: true }));
        }
        pause = Math.max(READ_MS, 4 * (performance.now() - readAt));
      } while (asked && current);
      busy = false;
    };
    again.current = read;
    read();

    // Events of listed tasks replace their rows; others are shown by reading again, unless the user has scrolled away.
    /** @type {Map<string, any>} */
    const newer = new Map();
    let unseen = 0;
    let timer = 0;
    const flush = () => {
      timer = 0;
      if (newer.size) {
        const changes = new Map(newer);
        newer.clear();
        setState((/** @type {any} */ before) => ({ ...before, tasks: before.tasks.map((/** @type {any} */ task) => changes.get(task.name) || task) }));
      }
      if (!unseen) return;
      if (window.scrollY >= 200 || shown.current.length > rows) {
        const count = unseen;
        unseen = 0;
        setPending((before) => before + count);
      } else if (!busy && performance.now() - readAt >= pause) {
        unseen = 0;
        read();
      } else timer = window.setTimeout(flush, Math.max(PAINT_MS, readAt + pause - performance.now()));
    };
    const listener = (/** @type {any[]} */ events) => {
      const names = new Set(shown.current.map((task) => task.name));
      for (const event of events) {
        const listed = event.task?.spec && names.has(event.task.name);
        if (listed) newer.set(event.task.name, event.task);
        if (event.type === "RESYNC") read();
        // With a filter, a change may also take a task off the list.
        else if (!listed || filter) unseen += 1;
      }
      if (newer.size || unseen) timer ||= window.setTimeout(flush, PAINT_MS);
    };
    live.listeners.add(listener);
    return () => { current = false; live.listeners.delete(listener); clearTimeout(timer); };
  }, [parent, filter]);
  const more = async () => {
    const older = await page(state.next);
    setState((/** @type {any} */ before) => ({ ...before, tasks: [...before.tasks, ...(older.tasks || [])], next: older.nextPageToken || "" }));
  };
  return { ...state, pending, reload: () => again.current(), more };
}

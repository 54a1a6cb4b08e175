// A task's output: only the lines on the screen are elements, and only so many are kept, so that a long log stays quick.
import { get, queryText } from "./api.js";
import { html, useEffect, useMemo, useRef, useState } from "./dom.js";
import { clock, inert, number, word } from "./format.js";
import { Problem } from "./parts.js";

const LINE = 20;
const KEPT = 50_000;
const PAGE = 1000;
const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/** @param {{name: string}} properties tenants/{tenant}/tasks/{task} */
export function Log({ name }) {
  const [level, setLevel] = useState("");
  const [search, setSearch] = useState("");
  const [follow, setFollow] = useState(true);
  const log = useLog(name, level, follow);
  const needle = search.toLowerCase();
  const lines = useMemo(() => (needle ? log.entries.filter((entry) => entry.message.toLowerCase().includes(needle)) : log.entries), [log.entries, needle]);
  return html`<div class="toolbar"><label>Search <input type="search" value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} /></label>
      <label>Level <select value=${level} onChange=${(/** @type {any} */ event) => setLevel(event.target.value)}><option value="">all</option>${LEVELS.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
      <label><input type="checkbox" checked=${follow} onChange=${(/** @type {any} */ event) => setFollow(event.target.checked)} /> Follow</label>
      <a class="button" href=${`v1/${name}/logs${queryText({ pageSize: PAGE })}`} download="log.json">Download</a>
      <span role="status">${number(lines.length)} lines${log.dropped ? `, ${number(log.dropped)} older ones not shown` : ""}${log.complete ? ", complete" : ""}</span></div>
    <${Problem} error=${log.error} />
    <${Lines} lines=${lines} follow=${follow} older=${log.older} onOlder=${log.loadOlder} />`;
}

/** @param {string} name @param {string} level @param {boolean} follow */
function useLog(name, level, follow) {
  const [state, setState] = useState(/** @type {{entries: any[], complete: boolean, dropped: number, older: string, error: any}} */ ({ entries: [], complete: false, dropped: 0, older: "", error: null }));
  const token = useRef("");
  const minLevel = level ? `LOG_LEVEL_${level}` : "";
  useEffect(() => {
    let current = true;
    token.current = "";
    // The newest page first; what came before is read when the reader scrolls up.
    get(`v1/${name}/logs`, { descending: true, pageSize: PAGE, minLevel }).then(
      (page) => current && setState({ entries: (page.entries || []).reverse(), complete: false, dropped: 0, older: page.nextPageToken || "", error: null }),
      (error) => current && setState((before) => ({ ...before, error })),
    );
    return () => { current = false; };
  }, [name, minLevel]);
  useEffect(() => {
    if (!follow) return undefined;
    /** @type {EventSource | null} */
    let source = null;
    /** @type {any[]} */
    let arrived = [];
    let timer = 0;
    let complete = false;
    const flush = () => {
      timer = 0;
      const more = arrived;
      arrived = [];
      setState((before) => {
        const newest = before.entries.length ? Number(before.entries[before.entries.length - 1].sequence) : 0;
        const entries = before.entries.concat(more.filter((entry) => Number(entry.sequence) > newest));
        const excess = Math.max(0, entries.length - KEPT);
        return { ...before, complete: before.complete || complete, entries: excess ? entries.slice(excess) : entries, dropped: before.dropped + excess, error: null };
      });
    };
    const open = () => {
      const query = { follow: true, tailLines: token.current ? undefined : PAGE, resumeToken: token.current, minLevel };
      source = new EventSource(`v1/${name}/logs:tail${queryText(query)}`);
      source.onmessage = (event) => {
        const answer = JSON.parse(event.data);
        token.current = answer.resumeToken || token.current;
        arrived.push(...(answer.entries || []));
        complete = complete || Boolean(answer.complete);
        timer ||= window.setTimeout(flush, 100);
        if (complete) source?.close();
      };
      source.addEventListener("end", () => { complete = true; source?.close(); timer ||= window.setTimeout(flush, 100); });
    };
    // A hidden tab follows nothing: connections to one host are few.
    const seen = () => {
      if (document.visibilityState === "visible" && !complete && !source) open();
      else if (document.visibilityState === "hidden") { source?.close(); source = null; }
    };
    seen();
    document.addEventListener("visibilitychange", seen);
    return () => { document.removeEventListener("visibilitychange", seen); source?.close(); clearTimeout(timer); };
  }, [name, minLevel, follow]);
  const loadOlder = async () => {
    const page = await get(`v1/${name}/logs`, { descending: true, pageSize: PAGE, pageToken: state.older, minLevel });
    setState((before) => ({ ...before, entries: (page.entries || []).reverse().concat(before.entries).slice(0, KEPT), older: page.nextPageToken || "" }));
  };
  return { ...state, loadOlder };
}

/** @param {{lines: any[], follow: boolean, older: string, onOlder: () => Promise<void>}} properties */
function Lines({ lines, follow, older, onOlder }) {
  const box = useRef(/** @type {any} */ (null));
  const [top, setTop] = useState(0);
  const atEnd = useRef(true);
  useEffect(() => {
    if (follow && atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.length, follow]);
  const scrolled = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    atEnd.current = scrollTop + clientHeight >= scrollHeight - 2 * LINE;
    setTop(scrollTop);
  };
  const height = box.current?.clientHeight || 480;
  const first = Math.max(0, Math.floor(top / LINE) - 20);
  const shown = lines.slice(first, first + Math.ceil(height / LINE) + 40);
  if (!lines.length) return html`<p class="empty">No output yet.</p>`;
  return html`${older ? html`<button onClick=${onOlder}>Older lines</button>` : null}
    <div class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-label="output">
      <div style=${{ height: `${lines.length * LINE}px` }}><div style=${{ transform: `translateY(${first * LINE}px)` }}>${shown.map((entry) => html`
        <div key=${entry.sequence} class=${`line level-${word(entry.level, "LOG_LEVEL_").toLowerCase()}`}><time>${clock(entry.time)}</time> ${inert(entry.message)}</div>`)}</div></div></div>`;
}

// A task's output: only the lines on the screen are elements, and only so many are kept, so that a log of any length
// stays quick. Lines further up, or further down when one reads from the first, are fetched as one scrolls there.
import { get } from "./api.js";
import { html, useEffect, useMemo, useRef, useState } from "./dom.js";
import { clock, inert, number, word } from "./format.js";
import { LogReader } from "./log_reader.js";
import { Problem } from "./parts.js";

const LINE = 20;
const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/** @param {{name: string}} properties tenants/{tenant}/tasks/{task} */
export function Log({ name }) {
  const [level, setLevel] = useState("");
  const [search, setSearch] = useState("");
  const [follow, setFollow] = useState(true);
  const [, repaint] = useState(0);
  const reader = useMemo(() => new LogReader(name, level ? `LOG_LEVEL_${level}` : ""), [name, level]);
  useEffect(() => {
    reader.onChange = () => repaint((before) => before + 1);
    reader.readEnd();
    return () => reader.close();
  }, [reader]);
  useEffect(() => (follow ? reader.follow() : undefined), [reader, follow]);
  const needle = search.toLowerCase();
  const lines = useMemo(() => (needle ? reader.entries.filter((entry) => entry.message.toLowerCase().includes(needle)) : reader.entries), [reader.entries, needle]);
  const first = () => { setFollow(false); reader.readStart(); };
  return html`<div class="toolbar"><label>Search <input type="search" value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} /></label>
      <label>Level <select value=${level} onChange=${(/** @type {any} */ event) => setLevel(event.target.value)}><option value="">all</option>${LEVELS.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
      <label><input type="checkbox" checked=${follow} onChange=${(/** @type {any} */ event) => setFollow(event.target.checked)} /> Follow</label>
      <button onClick=${first}>First line</button><button onClick=${() => { reader.readEnd(); setFollow(true); }}>Last line</button>
      <${Download} name=${name} />
      <span role="status">${needle ? `${number(lines.length)} of ` : ""}${number(reader.entries.length)} ${reader.entries.length === 1 ? "line" : "lines"}${reader.older ? ", older ones above" : ""}${reader.newer ? ", newer ones below" : ""}${reader.dropped ? `, ${number(reader.dropped)} were not kept by the runner` : ""}${reader.complete && !reader.newer ? ", complete" : ""}</span></div>
    <${Problem} error=${reader.error} />
    <${Lines} lines=${lines} follow=${follow} reader=${reader} onLeave=${() => setFollow(false)} />`;
}

/** @param {{lines: any[], follow: boolean, reader: LogReader, onLeave: () => void}} properties */
function Lines({ lines, follow, reader, onLeave }) {
  const box = useRef(/** @type {any} */ (null));
  const [top, setTop] = useState(0);
  const atEnd = useRef(true);
  const before = useRef(0);
  useEffect(() => { atEnd.current = follow; }, [follow]);
  useEffect(() => {
    if (!box.current) return;
    // Lines that came or went above the view move it along; a follower stays at the end.
    const moved = reader.takeShift() * LINE;
    if (reader.place) atEnd.current = reader.place === "end";
    if (reader.place === "start") box.current.scrollTop = 0;
    else if ((follow && atEnd.current) || reader.place) box.current.scrollTop = box.current.scrollHeight;
    else if (moved) box.current.scrollTop += moved;
    reader.place = "";
  }, [lines, follow]);
  const scrolled = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    // Lines that arrive between a scroll and its event do not count as leaving the end; only scrolling up does.
    if (scrollTop + clientHeight >= scrollHeight - 2 * LINE) atEnd.current = true;
    else if (scrollTop < before.current) atEnd.current = false;
    before.current = scrollTop;
    if (scrollTop < 20 * LINE && !atEnd.current && reader.older) { onLeave(); reader.readOlder(); }
    if (atEnd.current) reader.readNewer();
    setTop(scrollTop);
  };
  if (!lines.length) return html`<p class="empty">${reader.ready ? "No output." : "Reading…"}</p>`;
  const height = box.current?.clientHeight || 480;
  const first = Math.max(0, Math.min(Math.floor(top / LINE), lines.length) - 20);
  const shown = lines.slice(first, first + Math.ceil(height / LINE) + 40);
  return html`<div class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label="output">
      <div style=${{ height: `${lines.length * LINE}px` }}><div style=${{ transform: `translateY(${first * LINE}px)` }}>${shown.map((entry) => html`
        <div key=${`${entry.generation}-${entry.sequence}`} class=${`line level-${word(entry.level, "LOG_LEVEL_").toLowerCase()}`}><time>${clock(entry.time)}</time> ${inert(entry.message).replaceAll("\n", "\\n")}</div>`)}</div></div></div>`;
}

/** The whole log as a text file, written as it is read. @param {{name: string}} properties */
function Download({ name }) {
  const [done, setDone] = useState(-1);
  const [error, setError] = useState(/** @type {any} */ (null));
  const save = async () => {
    /** @type {Blob[]} */
    const parts = [];
    let pageToken = "";
    let count = 0;
    try {
      do {
        const page = await get(`v1/${name}/logs`, { pageSize: 1000, pageToken });
        const entries = page.entries || [];
        parts.push(new Blob(entries.map((/** @type {any} */ entry) => `${entry.time} ${entry.message}\n`)));
        setDone((count += entries.length));
        pageToken = page.nextPageToken || "";
      } while (pageToken);
      saveAs(new Blob(parts, { type: "text/plain" }), `${name.split("/").pop()}.log`);
    } catch (problem) {
      setError(problem);
    }
    setDone(-1);
  };
  return html`<button disabled=${done >= 0} onClick=${save}>${done >= 0 ? `${number(done)} lines…` : "Download"}</button><${Problem} error=${error} />`;
}

/** @param {Blob} file @param {string} name */
export function saveAs(file, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(file);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}

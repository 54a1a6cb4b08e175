// A window on a log: pages around what is shown, and the lines that arrive while it is followed.
//
// The window begins at the end of the log and grows upwards (order "end"), or begins at its first line and grows
// downwards ("start"). It is bounded: what lies at its other side is dropped, and read again when needed.
import { get, queryText } from "./api.js";

const PAGE = 1000;
const KEPT = 20_000;
const PAINT_MS = 150;
const RETRY_MS = 1500;

/** @param {any} left @param {any} right */
const before = (left, right) => Number(left.generation) - Number(right.generation) || Number(left.sequence) - Number(right.sequence);
/** What is shown of an entry, so that the rest of it can be collected. @param {any} entry */
const slim = ({ generation = "0", sequence, time, level, message = "" }) => ({ generation, sequence, time, level, message });

export class LogReader {
  /** @param {string} name @param {string} minLevel */
  constructor(name, minLevel) {
    this.name = name;
    this.minLevel = minLevel;
    this.onChange = () => {};
    /** @type {any[]} */
    this.entries = [];
    this.ready = false;
    this.complete = false;
    this.dropped = 0;
    /** @type {any} */
    this.error = null;
    /** Tokens of the pages above and below; "" where the log ends, null where its place is not known. @type {string | null} */
    this.olderToken = "";
    /** @type {string | null} */
    this.newerToken = "";
    /** Where the view belongs next. @type {"" | "start" | "end"} */
    this.place = "";
    this.resumeToken = "";
    this.shift = 0;
    this.busy = false;
    /** @type {Promise<void>} */
    this.current = Promise.resolve();
    this.interrupted = false;
    this.closed = false;
  }

  get older() { return this.olderToken !== ""; }
  get newer() { return this.newerToken !== ""; }

  close() {
    this.closed = true;
  }

  /** By how many lines the shown ones have moved down since the last call. */
  takeShift() {
    const shift = this.shift;
    this.shift = 0;
    return shift;
  }

  readEnd() {
    return this.jump(async () => {
      const page = await this.page({ descending: true });
      const arrived = this.newer ? [] : this.entries;
      this.entries = page.entries.reverse();
      this.olderToken = page.token;
      this.newerToken = "";
      this.place = "end";
      // What a follower received while the page was on its way.
      this.append(arrived);
    });
  }

  readStart() {
    return this.jump(async () => {
      const page = await this.page({});
      this.entries = page.entries;
      this.olderToken = "";
      this.newerToken = page.token;
      this.place = "start";
    });
  }

  readOlder() {
    if (this.olderToken === "") return undefined;
    return this.read(async () => {
      const oldest = this.entries[0];
      let page = await this.page({ descending: true, pageToken: this.olderToken || "" });
      // The place in the log was lost with dropped lines: it is found again from the end.
      while (this.olderToken === null && !this.interrupted && page.token && page.entries.length && before(page.entries[page.entries.length - 1], oldest) >= 0) page = await this.page({ descending: true, pageToken: page.token });
      if (this.interrupted) return;
      const found = page.entries.filter((/** @type {any} */ entry) => before(entry, oldest) < 0).reverse();
      this.olderToken = page.token;
      this.shift += found.length;
      this.entries = found.concat(this.entries);
      if (this.entries.length <= KEPT) return;
      this.entries = this.entries.slice(0, KEPT);
      this.newerToken = null;
    });
  }

  readNewer() {
    if (!this.newerToken) return undefined;
    return this.read(async () => {
      const page = await this.page({ pageToken: this.newerToken || "" });
      this.newerToken = page.token;
      this.append(page.entries);
    });
  }

  /** Lines at the end; those at the beginning are dropped if they are too many. @param {any[]} arrived */
  append(arrived) {
    const newest = this.entries[this.entries.length - 1];
    const entries = this.entries.concat(newest ? arrived.filter((entry) => before(entry, newest) > 0) : arrived);
    const excess = entries.length - KEPT;
    if (excess > 0) {
      // In larger steps, so that a follower does not copy the window for each page.
      const gone = Math.min(entries.length, excess + KEPT / 4);
      this.shift -= gone;
      this.olderToken = null;
      this.entries = entries.slice(gone);
    } else this.entries = entries;
  }

  /** Stays at the end until the returned function is called. */
  follow() {
    /** @type {EventSource | null} */
    let source = null;
    /** @type {any[]} */
    let arrived = [];
    let timer = 0;
    let again = 0;
    const flush = () => {
      timer = 0;
      const more = arrived.length > KEPT ? arrived.slice(-KEPT) : arrived;
      if (more.length < arrived.length) { this.entries = []; this.olderToken = null; }
      arrived = [];
      this.append(more);
      this.changed();
    };
    const open = () => {
      const query = { follow: true, tailLines: this.resumeToken ? undefined : PAGE, resumeToken: this.resumeToken, minLevel: this.minLevel };
      source = new EventSource(`v1/${this.name}/logs:tail${queryText(query)}`);
      source.onmessage = (event) => {
        const answer = JSON.parse(event.data);
        this.resumeToken = answer.resumeToken || this.resumeToken;
        this.dropped += Number(answer.droppedCount || 0);
        for (const entry of answer.entries || []) arrived.push(slim(entry));
        this.complete ||= Boolean(answer.complete);
        timer ||= window.setTimeout(flush, PAINT_MS);
        if (this.complete) source?.close();
      };
      source.addEventListener("end", () => { this.complete = true; source?.close(); timer ||= window.setTimeout(flush, PAINT_MS); });
      const opened = source;
      // A browser gives up after a status other than 200, for example of a gateway that is being restarted.
      source.onerror = () => { if (opened.readyState === EventSource.CLOSED) again = window.setTimeout(() => { if (source === opened) open(); }, RETRY_MS); };
    };
    // A hidden tab follows nothing: connections to one host are few.
    const seen = () => {
      if (document.visibilityState === "visible" && !source && !this.complete) open();
      else if (document.visibilityState === "hidden") { source?.close(); source = null; }
    };
    // Whoever has read elsewhere begins with the newest lines again.
    if (this.newer) { this.resumeToken = ""; this.complete = false; this.entries = []; this.readEnd(); }
    seen();
    document.addEventListener("visibilitychange", seen);
    return () => {
      document.removeEventListener("visibilitychange", seen);
      source?.close();
      clearTimeout(again);
      if (timer) { clearTimeout(timer); flush(); }
    };
  }

  /** One reading at a time: a jump waits for the one before, more lines are not read twice. @param {() => Promise<void>} work */
  jump(work) {
    this.interrupted = this.busy;
    this.current = this.current.then(() => { this.interrupted = false; return this.run(work); });
    return this.current;
  }

  /** @param {() => Promise<void>} work */
  read(work) {
    return this.busy ? undefined : this.jump(work);
  }

  /** @param {() => Promise<void>} work */
  async run(work) {
    this.busy = true;
    try {
      await work();
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.busy = false;
    this.ready = true;
    this.changed();
  }

  /** @param {Record<string, any>} query */
  async page(query) {
    const found = await get(`v1/${this.name}/logs`, { pageSize: PAGE, minLevel: this.minLevel, ...query });
    return { entries: (found.entries || []).map(slim), token: found.nextPageToken || "" };
  }

  changed() {
    if (!this.closed) this.onChange();
  }
}

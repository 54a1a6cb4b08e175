// One event stream per browser: the tab that holds the lock reads it and passes events on to the others.
//
// HTTP/1.1 allows six connections to a host, so a stream per tab would leave none for calls. Whichever tab gets the
// lock next goes on behind the last token, which every tab remembers.
import { get, queryText } from "./api.js";

const CHANNEL = "taskyard-live";
const STALE_MS = 45_000;
const RETRY_MS = 1500;
// The gateway reports an error of taskdb as an event within half a second; a stream that outlives this one works.
const PROVEN_MS = 1000;
// The first bookmark is also the point behind which nothing is missed.
const BOOKMARK = "3s";
// OUT_OF_RANGE and INVALID_ARGUMENT: the token is of no use any more.
const BAD_TOKEN = new Set([3, 11]);

/** @typedef {{kind: "events", events: any[], token: string} | {kind: "state", state: State}} Message */
/** @typedef {"live" | "connecting" | "lost"} State */

class Live {
  constructor() {
    /** @type {Set<(events: any[]) => void>} */
    this.listeners = new Set();
    /** @type {Set<(state: State) => void>} */
    this.watchers = new Set();
    /** @type {State} */
    this.state = "connecting";
    this.token = "";
    this.parent = "";
    /** @type {EventSource | null} */
    this.source = null;
    this.proof = 0;
    this.receivedAt = Date.now();
  }

  /** Begin for the tasks of a parent, tenants/{tenant} or tenants/-. @param {string} parent */
  start(parent) {
    if (this.parent) return;
    this.parent = parent;
    this.channel = new BroadcastChannel(`${CHANNEL}:${location.pathname}:${parent}`);
    this.channel.onmessage = (message) => this.receive(message.data);
    setInterval(() => {
      if (Date.now() - this.receivedAt > STALE_MS) this.setState("lost");
    }, 5000);
    const lead = () => new Promise(() => this.open());
    // Without locks (no secure context) each tab reads a stream of its own.
    if (navigator.locks) navigator.locks.request(`${CHANNEL}:${location.pathname}:${parent}`, lead);
    else lead();
  }

  open() {
    this.source?.close();
    const query = { view: "TASK_VIEW_BASIC", coalesce: true, bookmarkInterval: BOOKMARK, resumeToken: this.token };
    const source = new EventSource(`v1/${this.parent}/tasks:watch${queryText(query)}`);
    this.source = source;
    source.onopen = () => { this.proof = window.setTimeout(() => this.publish({ kind: "state", state: "live" }), PROVEN_MS); };
    source.onmessage = (event) => {
      const answer = JSON.parse(event.data);
      const events = answer.events || [];
      // A stream without a token begins at an unknown moment, so pages read what they show once more.
      if (!this.token) events.unshift({ type: "RESYNC" });
      this.publish({ kind: "events", events, token: answer.resumeToken || "" });
    };
    source.addEventListener("status", (event) => this.refused(JSON.parse(/** @type {any} */ (event).data)));
    source.onerror = () => {
      clearTimeout(this.proof);
      this.publish({ kind: "state", state: "connecting" });
      // A browser gives up after a status other than 200, for example of a proxy while the gateway restarts.
      if (source.readyState === EventSource.CLOSED) this.reopen();
    };
  }

  /** The server ended the stream with an error; the browser connects again by itself. @param {any} status */
  refused(status) {
    clearTimeout(this.proof);
    this.publish({ kind: "state", state: "connecting" });
    if (!BAD_TOKEN.has(status.code)) return;
    this.token = "";
    this.reopen();
  }

  reopen() {
    const source = this.source;
    source?.close();
    // A session that has ended is noticed by this call, which leads to the sign-in page.
    setTimeout(() => get("v1/whoami").catch(() => {}).then(() => { if (this.source === source) this.open(); }), RETRY_MS);
  }

  /** @param {Message} message */
  publish(message) {
    this.channel?.postMessage(message);
    this.receive(message);
  }

  /** @param {Message} message */
  receive(message) {
    if (message.kind === "state") return this.setState(message.state);
    this.receivedAt = Date.now();
    if (message.token) this.token = message.token;
    this.setState("live");
    if (message.events.length) for (const listener of this.listeners) listener(message.events);
  }

  /** @param {State} state */
  setState(state) {
    if (this.state === state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher(state);
  }
}

export const live = new Live();

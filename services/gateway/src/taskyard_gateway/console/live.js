// One event stream per browser: the tab that holds the lock reads it and passes events on to the others.
//
// HTTP/1.1 allows six connections to a host, so a stream per tab would leave none for calls. Whichever tab gets the
// lock next goes on behind the last token, which every tab remembers.
import { queryText } from "./api.js";

const CHANNEL = "taskyard-live";
const STALE_MS = 45_000;

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
    this.receivedAt = Date.now();
  }

  /** Begin for the tasks of a parent, tenants/{tenant} or tenants/-. @param {string} parent */
  start(parent) {
    if (this.parent === parent) return;
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
    const query = { view: "TASK_VIEW_BASIC", coalesce: true, resumeToken: this.token };
    this.source = new EventSource(`v1/${this.parent}/tasks:watch${queryText(query)}`);
    this.source.onopen = () => this.publish({ kind: "state", state: "live" });
    this.source.onmessage = (event) => {
      const answer = JSON.parse(event.data);
      this.publish({ kind: "events", events: answer.events || [], token: answer.resumeToken || "" });
    };
    this.source.addEventListener("status", (event) => this.refused(JSON.parse(/** @type {any} */ (event).data)));
    this.source.onerror = () => {
      this.publish({ kind: "state", state: "connecting" });
      // A browser gives up after a status other than 200, for example of a proxy while the gateway restarts.
      if (this.source?.readyState === EventSource.CLOSED) setTimeout(() => this.open(), 2000);
    };
  }

  /** The server ended the stream with an error; a token that is too old means: begin anew. @param {any} status */
  refused(status) {
    if (status.code === 11 || status.code === 3) {
      this.token = "";
      this.publish({ kind: "events", events: [{ type: "RESYNC" }], token: "" });
      this.open();
    }
  }

  /** @param {Message} message */
  publish(message) {
    this.channel?.postMessage(message);
    this.receive(message);
  }

  /** @param {Message} message */
  receive(message) {
    this.receivedAt = Date.now();
    if (message.kind === "state") return this.setState(message.state);
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

// The audit trail, newest first.
import { get } from "../api.js";
import { html, useState } from "../dom.js";
import { clock, facts, inert, word } from "../format.js";
import { Problem, Table, taskLink, useRead } from "../parts.js";
import { setQuery } from "../router.js";

/** @param {{me: import("../main.js").Me, route: import("../router.js").Route}} properties */
export function Audit({ me, route }) {
  const filter = route.query.get("filter") || "";
  const [text, setText] = useState(filter);
  const [older, setOlder] = useState(/** @type {{events: any[], next: string | undefined}} */ ({ events: [], next: undefined }));
  const { value, error } = useRead(() => get(`v1/${me.parent}/auditEvents`, { filter, pageSize: 100 }), [me.parent, filter], 5000);
  const next = older.next ?? value?.nextPageToken;
  const more = async () => {
    const page = await get(`v1/${me.parent}/auditEvents`, { filter, pageSize: 100, pageToken: next });
    setOlder((before) => ({ events: [...before.events, ...(page.auditEvents || [])], next: page.nextPageToken || "" }));
  };
  return html`<h1>Audit</h1><form class="filter" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); setOlder({ events: [], next: undefined }); setQuery({ filter: text.trim() }); }}>
      <label for="filter">Filter</label><input id="filter" value=${text} placeholder='event_type = "task.failed"' onInput=${(/** @type {any} */ event) => setText(event.target.value)} /><button>Apply</button></form>
    <${Problem} error=${error} />
    <${Table} rows=${value && [...(value.auditEvents || []), ...older.events]} error=${error} empty="Nothing matches." columns=${[
      ["Time", (/** @type {any} */ event) => clock(event.time)],
      ["Event", (/** @type {any} */ event) => event.eventType],
      ["By", (/** @type {any} */ event) => inert(`${word(event.actor?.type, "ACTOR_TYPE_").toLowerCase()} ${event.actor?.id || ""}`)],
      ["What", (/** @type {any} */ event) => (/\/tasks\//.test(event.resource) ? html`<a href=${taskLink(event.resource)}>${inert(event.resource)}</a>` : inert(event.resource))],
      ["Details", (/** @type {any} */ event) => facts(event.details)],
    ]} />${next ? html`<button onClick=${more}>Older events</button>` : null}`;
}

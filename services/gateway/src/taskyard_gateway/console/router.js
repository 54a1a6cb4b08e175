// Where the user is: the part of the URL behind "#", so that a link keeps page and filters below any prefix.
import { useEffect, useState } from "./dom.js";

const ID = /^(?!\.{1,2}$)[\w.-]+$/;

/** @typedef {{path: string[], query: URLSearchParams}} Route */

/** @returns {Route} */
export function here() {
  const [path, text] = location.hash.replace(/^#\/?/, "").split("?");
  const query = new URLSearchParams(text || "");
  // Ids become parts of the paths of calls: what cannot be one would lead elsewhere.
  if (query.has("tenant") && !ID.test(query.get("tenant") || "")) query.delete("tenant");
  const ids = path.split("/").filter(Boolean);
  return { path: ids.every((id) => ID.test(id)) ? ids : [], query };
}

/** @param {string[]} path @param {Record<string, string> | URLSearchParams} [query] */
export function link(path, query) {
  const text = new URLSearchParams(query).toString();
  return "#/" + path.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

/** @param {string} target */
export function go(target) {
  location.hash = target;
}

/** Change the query without another entry in the history. @param {Record<string, string>} changes */
export function setQuery(changes) {
  const { path, query } = here();
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  history.replaceState(null, "", link(path, query));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(here());
  useEffect(() => {
    const changed = () => setRoute(here());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

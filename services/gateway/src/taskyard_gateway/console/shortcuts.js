// The keys of the console, and the list of them that "?" shows.
import { html, useEffect, useRef, useState } from "./dom.js";
import { go, link } from "./router.js";

/** Pages by the letter behind "g". @type {Record<string, string>} */
const LETTERS = { o: "overview", t: "tasks", c: "create", s: "schedules", g: "groups", r: "runners", y: "types", e: "tenants", k: "keys", a: "audit", d: "doctor" };

/** The foot of every page: the keys, and where the API is described. @param {{pages: [string, string][]}} properties paths and titles */
export function Foot({ pages }) {
  const [shown, setShown] = useState(false);
  const titles = new Map(pages);
  useEffect(() => {
    let pressed = "";
    const listener = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || document.querySelector("dialog")) return;
      const page = pressed === "g" ? LETTERS[event.key] : undefined;
      if (page && titles.has(page)) go(link([page]));
      else if (event.key === "n") go(link(["create"]));
      else if (event.key === "?") setShown(true);
      else if (event.key === "/") {
        const filter = document.getElementById("filter");
        if (filter) { event.preventDefault(); filter.focus(); }
      }
      // A page that begins with g is not the beginning of another move.
      pressed = page ? "" : event.key;
    };
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, [pages.length]);
  const keys = [...Object.entries(LETTERS).filter(([, page]) => titles.has(page)).map(([letter, page]) => [`g ${letter}`, titles.get(page)]), ["n", "Create a task"], ["/", "Filter"], ["?", "This list"]];
  return html`<footer><button onClick=${() => setShown(true)}>Keyboard shortcuts</button> <a href="docs">API reference</a></footer>
    ${shown ? html`<${Keys} keys=${keys} onClose=${() => setShown(false)} />` : null}`;
}

/** @param {{keys: any[], onClose: () => void}} properties */
function Keys({ keys, onClose }) {
  const dialog = useRef(/** @type {any} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${onClose} aria-label="Keyboard shortcuts"><h2>Keyboard shortcuts</h2>
    <dl class="keys">${keys.map(([key, title]) => html`<div><dt>${key.split(" ").map((/** @type {string} */ each) => html`<kbd>${each}</kbd> `)}</dt><dd>${title}</dd></div>`)}</dl>
    <div class="actions"><button onClick=${() => dialog.current?.close()}>Close</button></div></dialog>`;
}

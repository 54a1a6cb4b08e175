// A graph of tasks in columns, arrows from left to right, as inline SVG with links.
import { html } from "./dom.js";
import { inert, last } from "./format.js";
import { nameLink } from "./parts.js";

const WIDTH = 200;
const GAP = 90;
const HEIGHT = 40;
const STEP = 52;
const EDGE = 4;
const LETTERS = 24;

/** A task or a group, whose phase is empty if it is archived or deleted; without a name, room for an arrow. @typedef {{name: string, phase: string, note?: string, own?: boolean}} Item */
/** `open`: what it comes from has not ended; `via`: its rooms in the columns between. @typedef {{from: Item, to: Item, open: boolean, via?: Item[], title?: string}} Arrow */

/** @param {{columns: Item[][], arrows: Arrow[], label: string}} properties */
export function Graph({ columns, arrows, label }) {
  const width = columns.length * (WIDTH + GAP) - GAP + 2 * EDGE;
  const height = Math.max(1, ...columns.map((column) => column.length)) * STEP + 2 * EDGE;
  /** @type {Map<Item, {x: number, y: number}>} */
  const places = new Map(columns.flatMap((column, at) => column.map((item, index) => [item, { x: EDGE + at * (WIDTH + GAP), y: height / 2 + (index - (column.length - 1) / 2) * STEP }])));
  const curve = (/** @type {Arrow} */ arrow) => {
    const points = [arrow.from, ...(arrow.via || []), arrow.to].map((item) => places.get(item) || { x: 0, y: 0 });
    const steps = points.slice(1).map(({ x, y }, index) => {
      const from = points[index];
      const end = index === points.length - 2 ? x - 7 : x;
      return `L ${from.x + WIDTH} ${from.y} C ${from.x + WIDTH + GAP / 2} ${from.y}, ${x - GAP / 2} ${y}, ${end} ${y}`;
    });
    return `M ${points[0].x + WIDTH} ${points[0].y} ${steps.join(" ")}`;
  };
  return html`<div class="scroll graph" tabindex="0" role="region" aria-label="graph of dependencies"><svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${label}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" /></marker></defs>
    ${arrows.map((arrow) => html`<path class=${arrow.open ? "edge open" : "edge"} d=${curve(arrow)} marker-end="url(#arrow)">${arrow.title ? html`<title>${arrow.title}</title>` : null}</path>`)}
    ${[...places].filter(([item]) => item.name).map(([item, { x, y }]) => html`<${Node} x=${x} y=${y} item=${item} />`)}
  </svg></div>`;
}

/** @param {{x: number, y: number, item: Item}} properties */
function Node({ x, y, item }) {
  const id = inert(last(item.name));
  const phase = item.phase || "gone";
  const box = html`<rect class=${item.own ? "node own" : "node"} x=${x} y=${y - HEIGHT / 2} width=${WIDTH} height=${HEIGHT} rx="6" />
    <text x=${x + 10} y=${y - 3}>${id.length > LETTERS ? `${id.slice(0, LETTERS - 1)}…` : id}</text>${" "}
    <text class=${`small phase-${phase.toLowerCase()}`} x=${x + 10} y=${y + 13}>${phase}${item.note || ""}</text>`;
  return item.own ? html`<g>${box}</g>` : html`<a href=${nameLink(item.name)}>${box}</a>`;
}

// Small charts, drawn as SVG, each with a table of the same numbers for those who cannot or need not see it.

import { count } from "./format.js";
import { h } from "./vdom.js";

const WIDE = 720;
const NARROW = 380;
const SMALL_SCREEN = 640;
const HEIGHT = 170;
const FLOOR = 22;

/** Stacked columns. `columns`: `{label, parts: {name: value}}`; `names`: `[name, words, class]`, bottom first. */
export function columns(title, data, names) {
  const total = (column) => names.reduce((sum, [name]) => sum + (column.parts[name] || 0), 0);
  const top = Math.max(1, ...data.map(total));
  const wide = innerWidth < SMALL_SCREEN ? NARROW : WIDE;
  const step = wide / Math.max(data.length, 1);
  const width = Math.min(46, step * 0.66);
  const scale = (HEIGHT - FLOOR - 14) / top;
  return h("figure", { class: "chart" },
    h("figcaption", {}, h("span", { class: "sr" }, title), legend(names)),
    h("svg", { viewBox: `0 0 ${wide} ${HEIGHT}`, role: "img", "aria-label": title },
      grid(top, scale, wide),
      data.map((column, index) => bar(column, names, { x: index * step + (step - width) / 2, width, scale, isLabelled: labelled(index, data.length, step) }))),
    table(title, data, names));
}

function grid(top, scale, wide) {
  const lines = [top, top / 2].filter((value) => value >= 1);
  return lines.map((value) => {
    const y = HEIGHT - FLOOR - value * scale;
    return h("g", { key: value, class: "grid" }, h("line", { x1: 0, x2: wide, y1: y, y2: y }), h("text", { x: 2, y: y - 3 }, count(Math.round(value))));
  });
}

function bar(column, names, { x, width, scale, isLabelled }) {
  let y = HEIGHT - FLOOR;
  return h("g", { key: column.label },
    h("title", {}, `${column.label}: ${names.map(([name, words]) => `${words} ${count(column.parts[name] || 0)}`).join(", ")}`),
    names.map(([name, , kind]) => {
      const height = (column.parts[name] || 0) * scale;
      y -= height;
      return height > 0 && h("rect", { key: name, class: kind, x, y, width, height: Math.max(height, 1), rx: 2 });
    }),
    isLabelled && h("text", { class: "label", x: x + width / 2, y: HEIGHT - 6, "text-anchor": "middle" }, column.label));
}

const LABEL_WIDTH = 44;
const labelled = (index, length, step) => (length - 1 - index) % Math.ceil(LABEL_WIDTH / step) === 0;

const legend = (names) => h("span", { class: "legend" }, names.map(([name, words, kind]) => h("span", { key: name }, h("i", { class: kind }), words)));

function table(title, data, names) {
  return h("details", { class: "as-table" }, h("summary", {}, "As a table"),
    h("table", {}, h("caption", { class: "sr" }, title),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), names.map(([name, words]) => h("th", { key: name, scope: "col" }, words)))),
      h("tbody", {}, data.map((column) => h("tr", { key: column.label }, h("th", { scope: "row" }, column.label), names.map(([name]) => h("td", { key: name }, count(column.parts[name] || 0))))))));
}

/** Horizontal bars: `rows` are `[label, value, words]`, the longest one full. */
export function bars(rows, kind = "") {
  const top = Math.max(1, ...rows.map(([, value]) => value));
  return h("ul", { class: "bars" }, rows.map(([label, value, words]) => h("li", { key: label },
    h("span", { class: "label" }, label), h("span", { class: "value" }, words ?? count(value)),
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: kind, style: { width: `${(value / top) * 100}%` } })))));
}

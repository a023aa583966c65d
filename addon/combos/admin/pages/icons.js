// The few drawings of the page. Decorations: the words beside them, or the label of their button, say it all.

import { h } from "./vdom.js";

const PATHS = {
  grip: "M6 4h.01M6 8h.01M6 12h.01M10 4h.01M10 8h.01M10 12h.01",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  trash: "M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.6 9h5.8l.6-9",
  plus: "M8 3v10M3 8h10",
  copy: "M6 5.5h7v8H6zM3 10.5V2.5h7",
  refresh: "M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5",
  undo: "M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6M3 6.5 6 3.5M3 6.5l3 3",
  redo: "M13 6.5H6.5a3.5 3.5 0 0 0 0 7H10M13 6.5l-3-3M13 6.5l-3 3",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M12.6 3.4l-.7.7M4.1 11.9l-.7.7",
  back: "M10 3 5 8l5 5",
  arrow: "M3 8h9M9 4.5 12.5 8 9 11.5",
  check: "M3 8.5 6.5 12 13 4.5",
  alert: "M8 2.5 14.5 13.5h-13zM8 6.5v3M8 11.5h.01",
};

export function icon(name) {
  return h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: PATHS[name] }));
}

export function logo() {
  return h("svg", { class: "logo", viewBox: "0 0 32 32", "aria-hidden": "true" },
    h("rect", { width: 32, height: 32, rx: 8 }),
    h("path", { d: "M7 9h7c5 0 4 7 9 7h2M7 23h7c5 0 4-7 9-7" }));
}

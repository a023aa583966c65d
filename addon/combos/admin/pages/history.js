// What became of the requests of one combo, whatever its strategy.

import { attempt, app, loadHistory } from "./state.js";
import { requestRows } from "./requests.js";
import { byDay, cards, jevPart, modelTable, ranges } from "./statistics.js";
import { h } from "./vdom.js";

export function historyTab(combo) {
  const found = app.history[combo.id];
  if (!found) return h("p", { class: "calm" }, "Loading…");
  const { usage, log, jev } = found;
  return [
    h("p", { class: "actions end" }, ranges(() => attempt(() => loadHistory(combo.id)))),
    usage?.summary.requests ? [cards(usage.summary), byDay(usage.days), modelTable(usage.models)] : h("p", { class: "calm" }, "No request in this window."),
    jev?.summary.decisions > 0 && jevPart(jev),
    log.length > 0 && h("section", { class: "card" }, h("h2", {}, "Latest requests"), requestRows(log)),
  ];
}

// The page of combos: the list on one side, one combo or the overview on the other; on small screens one at a time.

import { NEW, askRemove, copy, draftFor, duplicate, newCombo, newJevCombo } from "./actions.js";
import { isDirty } from "./draft.js";
import { editor } from "./editor.js";
import { button } from "./fields.js";
import { plural } from "./format.js";
import { historyTab } from "./history.js";
import { icon } from "./icons.js";
import { livePanel } from "./live.js";
import { overview } from "./overview.js";
import { to } from "./router.js";
import { app, changed, comboOf } from "./state.js";
import { standing, strip } from "./targetstate.js";
import { h } from "./vdom.js";

export const STRATEGIES = {
  failover: ["Failover", "In order: the next target is asked when the one before it failed."],
  "round-robin": ["Round-robin", "In turns, smoothly by weight."],
  random: ["Random", "Drawn for every request, by weight."],
  "least-used": ["Least used", "The one with the fewest successes so far."],
  "reset-window": ["Reset window", "The one whose quota begins anew soonest."],
  jev: ["JEV", "A decision service picks target and effort for each request."],
};
const TABS = [["live", "Live"], ["edit", "Configure"], ["history", "History"]];

export function combosPage({ id, tab }) {
  return h("div", { class: `split ${id ? "has-detail" : ""}` },
    list(id),
    h("section", { class: "detail", key: id || "overview", tabindex: "-1", "data-screen": true, "aria-label": id || "Overview" }, detail(id, tab)));
}

function list(current) {
  const wanted = app.filter.trim().toLowerCase();
  const rows = app.combos.filter((combo) => !wanted || text(combo).includes(wanted));
  return h("aside", { class: "list", "aria-label": "Combos" },
    h("div", { class: "row head" },
      h("h1", {}, "Combos ", h("span", { class: "count" }, app.combos.length)),
      button("New", () => newCombo(), { kind: "primary small", icon: icon("plus"), label: "New combo" })),
    h("input", {
      type: "search", placeholder: "Search id, alias, target", "aria-label": "Search combos", value: app.filter,
      oninput: (event) => {
        app.filter = event.target.value;
        changed();
      },
    }),
    h("ul", {}, rows.map((combo) => row(combo, current))),
    !rows.length && h("p", { class: "hint" }, app.combos.length ? "Nothing fits the search." : "There is no combo yet."),
    h("p", {}, button("New JEV Auto", () => newJevCombo(), { kind: "quiet small" })));
}

function text(combo) {
  return [combo.id, combo.model, combo.displayName, ...combo.targets.map(({ provider, model }) => `${provider}/${model}`)].join(" ").toLowerCase();
}

function row(combo, current) {
  const draft = app.drafts[combo.id];
  return h("li", { key: combo.id },
    h("a", { href: to("combos", combo.id, "live"), "aria-current": current === combo.id ? "true" : null },
      h("span", { class: "name" }, combo.displayName || combo.id, draft && isDirty(draft) && h("span", { class: "unsaved", title: "Not saved" }, "•", h("span", { class: "sr" }, " not saved"))),
      h("span", { class: "meta" }, combo.model, " · ", STRATEGIES[combo.strategy][0]),
      strip(app.live[combo.id])));
}

function detail(id, tab) {
  if (!id) return overview();
  const combo = comboOf(id);
  if (!combo && id !== NEW) return missing(id);
  if (id === NEW) return [h("header", { class: "head" }, backLink(), h("h1", {}, "New combo")), editor(draftFor(id))];
  return [heading(combo), tabs(combo, tab), h("div", { key: tab, class: "tab", id: "tabpanel" }, screen(combo, tab))];
}

function screen(combo, tab) {
  if (tab === "edit") return editor(draftFor(combo.id));
  return tab === "history" ? historyTab(combo) : livePanel(combo);
}

function missing(id) {
  return [h("header", { class: "head" }, backLink(), h("h1", {}, id)), h("p", {}, "There is no combo of this name (any more). ", h("a", { href: to("combos") }, "All combos")), leftOver(id)];
}

/** What was typed for a combo that was removed or renamed elsewhere. */
function leftOver(id) {
  const draft = app.drafts[id];
  if (!draft || !isDirty(draft)) return null;
  const keep = () => {
    delete app.drafts[id];
    newCombo(draft.value);
  };
  return h("p", {}, "What you typed here is not stored. ", button("Make it a new combo", keep, { kind: "small" }));
}

const backLink = () => h("a", { class: "back button quiet", href: to("combos"), "aria-label": "Back to all combos" }, icon("back"));

function heading(combo) {
  const live = app.live[combo.id];
  const ready = live ? live.targets.filter((target) => standing(target) === "ready").length : 0;
  return h("header", { class: "head" },
    backLink(),
    h("div", { class: "title" },
      h("h1", {}, combo.displayName || combo.id),
      h("p", { class: "meta" },
        h("code", {}, combo.model),
        button("", () => copy(combo.model), { kind: "quiet tiny", icon: icon("copy"), label: `Copy ${combo.model}` }),
        ` ${STRATEGIES[combo.strategy][0]} · `,
        live && `${ready} of ${plural(live.targets.length, "target")} ready`)),
    h("div", { class: "actions" },
      button("Duplicate", () => duplicate(combo), { kind: "quiet small folding", icon: icon("copy"), label: `Duplicate ${combo.id}` }),
      button("Remove", () => askRemove(combo), { kind: "quiet small danger folding", icon: icon("trash"), label: `Remove ${combo.id}` })));
}

function tabs(combo, current) {
  return h("nav", { class: "tabs", "aria-label": "Sections of this combo" }, TABS.map(([name, label]) => h("a", {
    key: name, href: to("combos", combo.id, name), "aria-current": name === current ? "page" : null,
  }, label, name === "edit" && app.drafts[combo.id] && isDirty(app.drafts[combo.id]) && h("span", { class: "unsaved" }, "•", h("span", { class: "sr" }, " not saved")))));
}

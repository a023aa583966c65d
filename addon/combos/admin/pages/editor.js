// The form of one combo: every field of the configuration, each with its own hint and its own problems.

import { discardDraft, isOutdated, saveDraft, takeStored } from "./actions.js";
import { STRATEGIES } from "./combos.js";
import { differences, isDirty, problemAt, redo, setField, undo } from "./draft.js";
import { button, checkField, choiceField, idOf, numberField, selectField, sentence, textField } from "./fields.js";
import { duration, plural } from "./format.js";
import { icon } from "./icons.js";
import { decisionSection } from "./jev.js";
import { planText } from "./live.js";
import { comboBadgeState } from "./quota.js";
import { app, changed } from "./state.js";
import { targetsSection } from "./targets.js";
import { h } from "./vdom.js";

export const RUNGS = ["low", "medium", "high", "xhigh", "max", "ultra"];
const FORMER = ["round-robin", "random"];

export function editor(draft) {
  return h("form", { class: "editor", key: draft.name, onsubmit: (event) => submit(event, draft), "aria-label": "Combo" },
    outdated(draft), summary(draft), naming(draft), strategy(draft), targetsSection(draft),
    draft.value.strategy === "jev" && decisionSection(draft),
    failing(draft), effort(draft), capabilities(draft), opening(draft), outcome(draft), savebar(draft));
}

function submit(event, draft) {
  event.preventDefault();
  if (saveable(draft)) saveDraft(draft);
}

/** A field of the draft by its name in the configuration, for any of the makers in `fields`. */
export function bound(draft, name, make, options) {
  const stored = make === checkField ? { checked: draft.value[name] } : { value: draft.value[name] };
  return make({ name: `${draft.name}.${name}`, problems: shownProblems(draft, name), ...stored, onchange: (value) => setField(draft, name, value), ...options });
}

/** A new form does not complain before something was typed into it. */
export function shownProblems(draft, path) {
  return draft.touched ? problemAt(draft, path) : [];
}

function section(title, hint, ...children) {
  return h("section", { class: "card", key: title }, h("h2", {}, title), hint && h("p", { class: "hint" }, hint), h("div", { class: "fields" }, children));
}

function summary(draft) {
  if (!draft.touched || !draft.problems.length) return null;
  return h("section", { class: "summary bad", tabindex: "-1", role: "alert", key: "summary" },
    h("strong", {}, icon("alert"), `${plural(draft.problems.length, "problem")} to mend before this can be saved`),
    h("ul", {}, draft.problems.map(({ path, message }) => h("li", { key: path + message },
      path && h("a", { href: `#${path}`, onclick: (event) => reveal(event, draft, path) }, path), path && ": ", sentence(message)))));
}

function outdated(draft) {
  if (!isOutdated(draft)) return null;
  return h("section", { class: "summary", role: "status", key: "outdated" },
    h("strong", {}, icon("alert"), "This combo was changed elsewhere meanwhile. Saving replaces that with what is here."),
    button("Take the stored one", () => takeStored(draft), { kind: "small" }));
}

function reveal(event, draft, path) {
  event.preventDefault();
  const found = document.getElementById(idOf(`${draft.name}.${path}`));
  found?.closest("details")?.setAttribute("open", "");
  (found || document.querySelector(".editor [aria-invalid=true]"))?.focus();
}

function showFirst(draft) {
  const invalid = document.querySelector(".editor [aria-invalid=true]");
  invalid?.closest("details")?.setAttribute("open", "");
  (invalid || document.querySelector(".summary.bad"))?.focus();
}

function naming(draft) {
  const { id, alias, nativeAlias } = draft.value;
  return section("Name", null,
    bound(draft, "id", textField, { label: "Id", mono: true, placeholder: "main", hint: `Clients ask for combo/${id || "<id>"}.${draft.originId && draft.originId !== id ? ` Saving renames ${draft.originId}.` : ""}` }),
    bound(draft, "alias", textField, { label: "Alias", mono: true, placeholder: "team/best", value: alias, onchange: (text) => setField(draft, "alias", text || null), hint: "A second public name, one word or two with a slash." }),
    bound(draft, "displayName", textField, { label: "Display name", onchange: (text) => setField(draft, "displayName", text || null), hint: "Shown in model lists." }),
    (alias || nativeAlias) && bound(draft, "nativeAlias", checkField, { label: "Native alias", hint: "The alias is the name of a native model, and takes its place. Needs a display name." }));
}

function strategy(draft) {
  const options = Object.entries(STRATEGIES).map(([name, [label, hint]]) => [name, label, hint]);
  return section("Strategy", null,
    bound(draft, "strategy", choiceField, { legend: "How the next target is chosen", options, className: "strategies" }),
    draft.value.strategy === "round-robin" && bound(draft, "stickyLimit", numberField, { label: "Sticky limit", hint: "Successful requests before it is the next one's turn, 1 to 100." }));
}

function failing(draft) {
  const { cooldownMs, waitForCooldownMs, targets, cooldownWaitPolicy } = draft.value;
  const marked = targets.some((target) => target.lastResort);
  return section("When targets fail", null,
    bound(draft, "cooldownMs", numberField, {
      label: "Cooldown", unit: "ms", placeholder: "by failure",
      hint: [milliseconds(cooldownMs), "How long a failed target rests when it does not say so itself. Empty: 5 s, 60 s or 10 min, by the kind of failure. 1 to 600,000."],
    }),
    bound(draft, "waitForCooldownMs", numberField, {
      label: "Wait for a cooling target", unit: "ms",
      hint: [milliseconds(waitForCooldownMs), "When all targets rest, a request is held this long for the first one back. 0: refused at once. Up to 600,000."],
    }),
    bound(draft, "cooldownWaitPolicy", selectField, {
      label: "Last resort targets", options: [[null, "are asked like any other"], ["before-last-resort", "only when no other target is available"]],
      hint: marked || !cooldownWaitPolicy ? "Mark a target as last resort in the list of targets." : "No target is marked as last resort yet: mark one in the list of targets.",
    }),
    bound(draft, "contextOverflow", selectField, {
      label: "A request too long for a target", options: [["stop", "is refused, as the target said"], ["hop", "goes on to the next target"]],
    }));
}

const milliseconds = (value) => (Number.isInteger(value) && value >= 1000 ? h("b", {}, `= ${duration(value)}. `) : null);

function effort(draft) {
  const { defaultEffort, defaultEffortMode } = draft.value;
  return section("Reasoning effort", null,
    bound(draft, "defaultEffort", selectField, {
      label: "Default effort", options: [[null, "none: as the client asks"], ...RUNGS.map((rung) => [rung, rung])],
      hint: "Used on targets whose ladder is known; the nearest supported rung at or below it.",
    }),
    bound(draft, "defaultEffortMode", selectField, {
      label: "When the client asks for an effort", options: [["fallback", "the client's effort is kept"], ["force", "the default replaces it"]],
      hint: defaultEffortMode === "force" ? "Forcing can make requests dearer and slower." : !defaultEffort && "Matters only with a default effort.",
    }),
    bound(draft, "reasoningEffortMode", selectField, {
      label: "Published ladder", options: [["strict", "strict: what every target supports"], ["adaptive", "adaptive: leave out targets without effort"]],
      hint: "With adaptive, one target without effort control does not empty the choice for all.",
    }));
}

function capabilities(draft) {
  return section("Capabilities", null,
    bound(draft, "imageInput", selectField, {
      label: "Images", options: [["auto", "accepted when every target takes images"], ["disabled", "never: text only"]],
      hint: "With text only, requests with images are refused before any target is asked.",
    }));
}

function opening(draft) {
  const { firstOutputTimeoutMs, hedgeAfterMs } = draft.value;
  return section("Slow targets and conversations", "All off unless set.",
    bound(draft, "firstOutputTimeoutMs", numberField, {
      label: "First output within", unit: "ms", placeholder: "off", hint: [milliseconds(firstOutputTimeoutMs), "A target that answers but says nothing for this long counts as failed. 1 to 600,000."],
    }),
    bound(draft, "hedgeAfterMs", numberField, {
      label: "Ask a second target after", unit: "ms", placeholder: "off", hint: [milliseconds(hedgeAfterMs), "The first to speak serves, the other is cancelled. Costs a second request. 1 to 600,000."],
    }),
    bound(draft, "affinity", selectField, {
      label: "Conversations", options: [["none", "may change the target at any turn"], ["conversation", "stay with the target that served them"]],
    }));
}

function outcome(draft) {
  return h("section", { class: "card plan", key: "outcome", "aria-label": "What the next request would do" },
    h("h2", {}, "With this, the next request"),
    draft.plan ? planText(draft.plan) : h("p", { class: "calm" }, draft.problems.length ? "can be foretold when the problems are mended." : "…"),
    draft.stored && h("details", {}, h("summary", {}, "As it is written to the file"), h("pre", {}, JSON.stringify(draft.stored, null, 2))));
}

function saveable(draft) {
  return isDirty(draft) && !draft.saving && comboBadgeState(draft.value) !== "exhausted";
}

function savebar(draft) {
  const changes = differences(draft);
  const spent = comboBadgeState(draft.value) === "exhausted";
  const words = spent ? "The quota of every usable target is used up: saving waits for a reset." : state(draft, changes);
  return h("div", { class: `savebar ${isDirty(draft) ? "dirty" : ""}`, key: "savebar" },
    h("div", { class: "row" },
      h("span", { class: "say", role: "status" }, words, draft.touched && draft.problems.length > 0 && button("Show", () => showFirst(draft), { kind: "quiet small", label: "Show the first problem" })),
      button("", () => undo(draft), { kind: "quiet small", icon: icon("undo"), label: "Undo", title: "Undo (Ctrl+Z)", disabled: !draft.past.length }),
      button("", () => redo(draft), { kind: "quiet small", icon: icon("redo"), label: "Redo", title: "Redo (Ctrl+Shift+Z)", disabled: !draft.future.length }),
      draft.originId !== null && changes.length > 0 && button("Changes", () => review(draft), { kind: "quiet small" }),
      (isDirty(draft) || draft.originId === null) && button(draft.originId === null ? "Cancel" : "Discard", () => discardDraft(draft), { kind: "quiet small" }),
      h("button", { type: "submit", class: "button primary", disabled: !saveable(draft), title: "Ctrl+S" }, draft.originId === null ? "Create" : "Save")));
}

function state(draft, changes) {
  if (draft.touched && draft.problems.length) return plural(draft.problems.length, "problem");
  if (draft.originId === null) return "Not created yet";
  return changes.length ? `${plural(changes.length, "change")} not saved` : "Saved";
}

function review(draft) {
  app.dialog = {
    title: "Changes", wide: true,
    body: () => h("table", { class: "diff" },
      h("thead", {}, h("tr", {}, h("th", {}, "Field"), h("th", {}, "Stored"), h("th", {}, "Now"))),
      h("tbody", {}, differences(draft).map(({ name, before, after }) => h("tr", { key: name }, h("th", { scope: "row" }, h("code", {}, name)), h("td", { class: "before" }, before), h("td", { class: "after" }, after))))),
    actions: [{ label: "Save", kind: "primary", run: () => saveable(draft) && saveDraft(draft) }],
  };
  changed();
}

export const isWeighted = (strategyName) => FORMER.includes(strategyName);

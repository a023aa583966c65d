// The list of targets in the editor: order by dragging, by buttons and by keys; provider, model, weight, notes.

import { isWeighted, RUNGS, shownProblems } from "./editor.js";
import { edit, newTarget } from "./draft.js";
import { dragHandle } from "./drag.js";
import { button, checkField, field, numberField, problemList, selectField, textField } from "./fields.js";
import { percent } from "./format.js";
import { icon } from "./icons.js";
import { quotaBadge } from "./quota.js";
import { app, providerOf } from "./state.js";
import { pill } from "./targetstate.js";
import { h } from "./vdom.js";

const NOTE_MAX = 512;

export function targetsSection(draft) {
  const { targets, strategy } = draft.value;
  return h("section", { class: "card", key: "targets" },
    h("h2", {}, "Targets"),
    h("p", { class: "hint" }, strategy === "failover" ? "Asked in this order." : "Order matters where everything else is equal."),
    problemList("targets", shownProblems(draft, "targets")),
    h("ol", { class: "targets", "aria-label": "Targets" }, targets.map((target, index) => row(draft, target, index))),
    button("Add target", () => add(draft), { icon: icon("plus"), kind: "small" }));
}

function add(draft) {
  const made = newTarget();
  edit(draft, (value) => value.targets.push(made));
  setTimeout(() => document.querySelector(".targets > li:last-child select")?.focus());
}

const change = (draft, index, name, value) => edit(draft, (made) => { made.targets[index][name] = value; }, `target:${index}:${name}`);

export function move(draft, from, to) {
  if (to < 0 || to >= draft.value.targets.length || from === to) return;
  edit(draft, (value) => value.targets.splice(to, 0, value.targets.splice(from, 1)[0]));
}

function row(draft, target, index) {
  const { targets, strategy } = draft.value;
  const name = (part) => `${draft.name}.targets[${index}].${part}`;
  const problems = (part) => shownProblems(draft, `targets[${index}].${part}`);
  const where = target.model ? `${target.provider}/${target.model}` : `target ${index + 1}`;
  return h("li", { key: target.key, class: "target-row", "data-key": target.key },
    h("div", { class: "tools" },
      dragHandle({ label: `Move ${where}: drag, or press the arrow keys`, onmove: (to) => move(draft, index, to), index }),
      h("span", { class: "place" }, index + 1),
      h("span", { class: "marks" }, live(draft, target), quotaBadge(target.provider, `edit-${target.key}`), index === failOpen(draft) && h("span", { class: "flag", title: "Used when no decision comes" }, "fail-open")),
      h("span", { class: "moves" },
        button("", () => move(draft, index, index - 1), { kind: "quiet tiny", icon: icon("up"), label: `Move ${where} up`, disabled: index === 0 }),
        button("", () => move(draft, index, index + 1), { kind: "quiet tiny", icon: icon("down"), label: `Move ${where} down`, disabled: index === targets.length - 1 }),
        button("", () => edit(draft, (value) => value.targets.splice(index, 1)), { kind: "quiet tiny danger", icon: icon("trash"), label: `Remove ${where}`, disabled: targets.length === 1 }))),
    problemList(name("row"), shownProblems(draft, `targets[${index}]`)),
    h("div", { class: "fields" },
      selectField({ name: name("provider"), label: "Provider", value: target.provider, problems: problems("provider"), options: providerOptions(target.provider), onchange: (value) => change(draft, index, "provider", value ?? "") }),
      modelField(draft, target, index, name, problems),
      isWeighted(strategy) && weightField(draft, target, index, name, problems)),
    more(draft, target, index, name, problems));
}

/** Providers that can be targets; the chosen one stays in the list whatever it is. */
function providerOptions(chosen) {
  const usable = app.providers.filter((provider) => !provider.disabled && provider.adapter !== "jev-decision").map((provider) => provider.name);
  const names = chosen && !usable.includes(chosen) ? [...usable, chosen] : usable;
  return [["", "Choose…"], ...names.map((name) => [name, usable.includes(name) ? name : `${name} (${providerOf(name) ? "not usable" : "not configured"})`])];
}

function modelField(draft, target, index, name, problems) {
  const list = `models-${target.key}`;
  return field({
    name: name("model"), label: "Model", problems: problems("model"), className: "grow",
    control: (id, attributes) => [
      h("input", { id, class: "mono", value: target.model, list, autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "any model id", oninput: (event) => change(draft, index, "model", event.target.value), ...attributes }),
      h("datalist", { id: list }, knownModels(target.provider).map((model) => h("option", { key: model, value: model })))
    ]
  });
}

function knownModels(name) {
  const provider = providerOf(name);
  if (!provider) return [];
  const listed = app.models.filter((row) => row.provider === name && !row.disabled).map((row) => row.namespaced.slice(name.length + 1));
  return [...new Set([provider.defaultModel, ...provider.models, ...listed].filter(Boolean))];
}

function weightField(draft, target, index, name, problems) {
  const total = draft.value.targets.reduce((sum, one) => sum + (Number.isInteger(one.weight) ? one.weight : 0), 0);
  const share = Number.isInteger(target.weight) && total ? target.weight / total : 0;
  return numberField({
    name: name("weight"), label: "Weight", value: target.weight, problems: problems("weight"), className: "weight",
    hint: [h("span", { class: "sharebar" }, h("span", { style: { width: `${share * 100}%` } })), h("b", { class: "share" }, percent(share)), " of requests"],
    onchange: (value) => change(draft, index, "weight", value)
  });
}

/** The target that serves when no decision comes: the first that can. -1 without decisions. */
function failOpen(draft) {
  if (draft.value.strategy !== "jev") return -1;
  return draft.value.targets.findIndex(({ provider }) => providerOf(provider) && !providerOf(provider).disabled);
}

function live(draft, target) {
  const state = app.live[draft.originId]?.targets.find((one) => one.provider === target.provider && one.model === target.model);
  return state ? pill(state) : null;
}

function more(draft, target, index, name, problems) {
  const jev = draft.value.strategy === "jev";
  const set = [target.lastResort && "last resort", target.reasoningEfforts && `efforts ${target.reasoningEfforts.join(", ")}`, target.modelProfile && "note"].filter(Boolean);
  return h("details", { class: "more", open: app.opened[target.key] ?? (jev || set.length > 0), ontoggle: (event) => { app.opened[target.key] = event.target.open; } },
    h("summary", {}, "More", set.length > 0 && h("span", { class: "hint" }, `: ${set.join(" · ")}`)),
    h("div", { class: "fields" },
      checkField({
        name: name("lastResort"), label: "Last resort", checked: target.lastResort, problems: problems("lastResort"), onchange: (value) => change(draft, index, "lastResort", value),
        hint: draft.value.cooldownWaitPolicy ? "Asked only when no other target is available." : "Has no effect until “Last resort targets” below says so."
      }),
      efforts(draft, target, index, problems),
      textField({
        name: name("modelProfile"), label: "Note for the decision", value: target.modelProfile, problems: problems("modelProfile"), onchange: (text) => change(draft, index, "modelProfile", text || null), wide: true,
        hint: `What the decision service should know of this target; only with JEV. ${(target.modelProfile || "").length} of ${NOTE_MAX} characters.`
      })));
}

function efforts(draft, target, index, problems) {
  const chosen = target.reasoningEfforts;
  const toggle = (rung, on) => {
    const kept = RUNGS.filter((one) => (one === rung ? on : (chosen || []).includes(one)));
    change(draft, index, "reasoningEfforts", kept.length ? kept : null);
  };
  return h("fieldset", { class: "rungs" },
    h("legend", {}, "Efforts a decision may choose"),
    h("div", { class: "options" }, RUNGS.map((rung) => h("label", { key: rung }, h("input", { type: "checkbox", checked: Boolean(chosen?.includes(rung)), onchange: (event) => toggle(rung, event.target.checked) }), rung))),
    h("p", { class: "hint" }, chosen ? "Only these, where the target supports them." : "None ticked: all the target supports. Only with JEV."),
    problemList(`efforts-${target.key}`, problems("reasoningEfforts")));
}

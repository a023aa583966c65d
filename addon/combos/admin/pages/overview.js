// What is seen first: how many of what, what needs attention, what just happened.

import { newCombo } from "./actions.js";
import { button } from "./fields.js";
import { ago, duration, plural, time } from "./format.js";
import { comboBadgeState } from "./quota.js";
import { requestRows } from "./requests.js";
import { to } from "./router.js";
import { app, now } from "./state.js";
import { isCooling, leftMs, reasonText, standing } from "./targetstate.js";
import { h } from "./vdom.js";

const SHOWN = { hop: hopLine, cooldown: coolingLine, reload: reloadLine, cooldowns_cleared: clearedLine, turn: turnLine };

export function overview() {
  if (!app.combos.length) return welcome();
  const needs = attention();
  return h("div", { class: "overview" },
    counters(),
    h("section", { class: "card" }, h("h2", {}, "Needs attention"),
      needs.length ? h("ul", { class: "attention" }, needs) : h("p", { class: "calm" }, "Everything is in order: every combo has a target that is ready.")),
    h("section", { class: "card" }, h("h2", {}, "Happening now"), feed()),
    app.log?.logs.length > 0 && h("section", { class: "card" },
      h("h2", {}, "Latest requests ", h("a", { class: "more", href: to("requests") }, "all requests")),
      requestRows(app.log.logs.slice(0, 6))));
}

function welcome() {
  return h("div", { class: "card welcome" },
    h("h2", {}, "A combo is one model name over several targets"),
    h("p", {}, "Clients ask for ", h("code", {}, "combo/<id>"), " or an alias. When the target that was asked fails before it has said anything, the same request goes to the next one."),
    app.providers.length
      ? button("Create the first combo", () => newCombo(), { kind: "primary" })
      : h("p", {}, "First ", h("a", { href: to("providers") }, "add a provider"), "."));
}

function counters() {
  const states = app.combos.map((combo) => app.live[combo.id]).filter(Boolean);
  const targets = states.flatMap((combo) => combo.targets);
  const of = (kind) => targets.filter((target) => standing(target) === kind).length;
  return h("dl", { class: "counters" }, [["Combos", app.combos.length], ["Targets ready", of("ready"), "ready"], ["Cooling", of("cooling"), "cooling"], ["Out", of("out"), "out"]]
    .map(([label, value, kind]) => h("div", { key: label, class: value && kind ? kind : "" }, h("dt", {}, label), h("dd", {}, value))));
}

function attention() {
  return app.combos.flatMap((combo) => {
    const live = app.live[combo.id];
    const rows = [];
    if (live && !live.targets.some((target) => standing(target) === "ready")) rows.push(allOut(combo, live));
    else if (live) rows.push(...live.targets.filter((target) => standing(target) === "out").map((target) => [combo, `${target.target}: ${reasonText(target.reason)}`, "warn"]));
    if (combo.targets.length === 1) rows.push([combo, "has a single target: nothing to fall back to", "note"]);
    if (comboBadgeState(combo) === "exhausted") rows.push([combo, "the quota of every target is used up", "warn"]);
    return rows;
  }).map(([combo, words, kind]) => h("li", { key: `${combo.id}${words}`, class: kind }, h("a", { href: to("combos", combo.id, "live") }, combo.displayName || combo.id), " ", words));
}

function allOut(combo, live) {
  const cooling = live.targets.filter(isCooling).map(leftMs);
  const back = cooling.length ? `, the first is back in ${duration(Math.min(...cooling))}` : "";
  return [combo, `no target is ready${back}`, "bad"];
}

function feed() {
  const rows = app.feed.map((event) => [event, SHOWN[event.kind]?.(event)]).filter(([, words]) => words).slice(0, 12);
  if (!rows.length) return h("p", { class: "calm" }, "Requests, hops and cooldowns appear here as they happen.");
  return h("ol", { class: "feed" }, rows.map(([event, words]) => h("li", { key: event.id, class: event.kind },
    h("time", { title: time(event.at) }, ago(event.at, now())), h("span", { class: "what" }, words))));
}

const link = (id) => (id && app.live[id] ? h("a", { href: to("combos", id, "live") }, id) : id || "");

function hopLine(event) {
  return [link(event.combo), ": ", h("b", {}, event.from), " failed (", h("code", {}, event.rule), "), on to ", h("b", {}, event.to)];
}

function coolingLine(event) {
  return [link(event.combo), ": ", h("b", {}, event.target), ` rests ${duration(event.ms)} (`, h("code", {}, event.rule), ")"];
}

function reloadLine(event) {
  const words = { loaded: "The configuration was loaded", invalid: `The configuration file has ${plural(event.problems, "problem")}`, missing: "The configuration file is gone" };
  return words[event.change] || null;
}

function clearedLine(event) {
  return `${plural(event.cleared, "cooldown")} ended by hand`;
}

function turnLine(event) {
  const served = event.outcome === "success" ? "served" : event.outcome;
  return [link(event.combo) || event.requestedModel, ": ", h("b", { class: event.outcome }, served), ` with ${plural(event.attempts, "attempt")} in ${duration(event.durationMs)}`];
}

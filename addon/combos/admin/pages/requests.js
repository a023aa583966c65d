// Requests that are over, each with its trail: which targets were asked, what they said, which rule fired, what rested.

import { button } from "./fields.js";
import { count, duration, instant, plural, time, usd } from "./format.js";
import { icon } from "./icons.js";
import { to } from "./router.js";
import { app, attempt, changed, loadLog } from "./state.js";
import { sourceText } from "./targetstate.js";
import { h } from "./vdom.js";

export function requestsPage() {
  const log = app.log;
  return h("section", { class: "wide", "data-screen": true, tabindex: "-1", "aria-label": "Requests" },
    h("header", { class: "head" }, h("h1", {}, "Requests ", log && h("span", { class: "count" }, count(log.total))),
      h("div", { class: "actions" }, h("label", { class: "inline" }, "Combo ", filter()))),
    !log ? h("p", { class: "calm" }, "Loading…") : rows(log),
    log?.cursor && h("p", {}, button("Show older", () => attempt(() => loadLog(true)), { kind: "small" })));
}

function filter() {
  const choose = (event) => {
    app.logCombo = event.target.value;
    attempt(loadLog);
  };
  return h("select", { onchange: choose },
    h("option", { value: "" }, "all"),
    app.combos.map((combo) => h("option", { key: combo.id, value: combo.id, selected: app.logCombo === combo.id }, combo.id)));
}

function rows(log) {
  if (!log.logs.length) return h("p", { class: "calm" }, "No request is on record yet. The ledger keeps no prompts, no keys and no answers.");
  return requestRows(log.logs);
}

/** A list of records, newest first; each opens to its attempts. */
export function requestRows(logs) {
  return h("ol", { class: "requests" }, logs.map((row) => h("li", { key: row.number }, h("details", {
    open: Boolean(app.opened[row.requestId]), ontoggle: (event) => {
      app.opened[row.requestId] = event.target.open;
      changed();
    },
  }, headline(row), app.opened[row.requestId] && trail(row)))));
}

function headline(row) {
  const ok = row.outcome === "success";
  return h("summary", {},
    h("time", { title: new Date(row.timestamp).toLocaleString() }, isToday(row.timestamp) ? time(row.timestamp) : instant(row.timestamp)),
    h("span", { class: `pill ${ok ? "ready" : "out"}` }, row.status ?? "–", " ", ok ? "served" : row.outcome),
    h("span", { class: "name" }, row.combo || row.requestedModel),
    h("span", { class: "steps" }, row.attempts.map((attempt, index) => h("span", { key: attempt.ordinal, class: attempt.served ? "ok" : attempt.rule ? "bad" : "" },
      index > 0 && icon("arrow"), `${attempt.provider}/${attempt.model}`, !attempt.served && h("em", {}, ` ${attempt.status ?? attempt.result ?? ""}`)))),
    h("span", { class: "nums" }, duration(row.durationMs), row.usage?.totalTokens ? ` · ${count(row.usage.totalTokens)} tokens` : ""));
}

const isToday = (at) => new Date(at).toDateString() === new Date().toDateString();

function trail(row) {
  const whole = Math.max(row.durationMs || 1, 1);
  return h("div", { class: "trail" },
    h("p", { class: "meta" }, facts(row)),
    row.jevDecision && decision(row.jevDecision),
    h("ol", {}, row.attempts.map((attempt) => step(attempt, whole))),
    !row.attempts.length && h("p", { class: "calm" }, "No target was asked."));
}

function facts(row) {
  const words = [
    `asked for ${row.requestedModel}`, row.inboundProtocol, row.reason,
    row.waitsMs.length && `waited ${duration(row.waitsMs.reduce((sum, one) => sum + one, 0))} for a cooldown`,
    row.firstOutputMs !== null && `first output after ${duration(row.firstOutputMs)}`,
    row.usage && `${count(row.usage.inputTokens)} in, ${count(row.usage.outputTokens)} out`,
  ].filter(Boolean);
  return [words.join(" · "), row.combo && app.live[row.combo] && [" · ", h("a", { href: to("combos", row.combo, "live") }, "open combo")]];
}

function decision(made) {
  const { selected, gate, backend, latencyMs, confidence } = made;
  const what = gate === "apply" ? "picked" : `failed open (${gate}) to`;
  const effort = selected.effort ? `, effort ${selected.effort}` : "";
  return h("p", { class: "meta" }, `${backend} ${what} ${selected.provider}/${selected.model}${effort} in ${duration(latencyMs)}`, confidence !== undefined && confidence !== null && `, confidence ${confidence}`);
}

function step(attempt, whole) {
  const kind = attempt.served ? "ok" : attempt.rule ? "bad" : "none";
  const start = Math.min(attempt.startedMs / whole, 1) * 100;
  const length = Math.min((attempt.durationMs || 0) / whole, 1) * 100;
  return h("li", { key: attempt.ordinal, class: `step ${kind}` },
    h("div", { class: "line" },
      h("b", { class: "target" }, `${attempt.provider}/${attempt.model}`),
      h("span", {}, said(attempt)),
      h("span", { class: "nums" }, duration(attempt.durationMs))),
    h("span", { class: "fall", "aria-hidden": "true" }, h("span", { style: { "margin-left": `${start}%`, width: `max(3px, ${length}%)` } })),
    attempt.rule && h("p", { class: "why" }, h("span", {}, verdict(attempt))),
    attempt.upstreamError && h("p", { class: "why" }, h("span", { class: "quote" }, attempt.errorCode && [h("code", {}, attempt.errorCode), " "], attempt.upstreamError)),
    h("p", { class: "meta" }, [
      attempt.dialect, attempt.account && `account ${attempt.account}`, attempt.sendCount > 1 && plural(attempt.sendCount, "send"),
      attempt.firstOutputMs !== null && `first output after ${duration(attempt.firstOutputMs)}`,
      attempt.usage && `${count(attempt.usage.inputTokens)} in, ${count(attempt.usage.outputTokens)} out`,
      attempt.costUsd !== null && usd(attempt.costUsd), attempt.dropped.length && `left out: ${attempt.dropped.join(", ")}`,
    ].filter(Boolean).join(" · ")));
}

function said({ status, served, result }) {
  if (served) return `${status} served`;
  return status && result === `http ${status}` ? status : [status, result].filter(Boolean).join(" ");
}

function verdict(attempt) {
  const rest = attempt.cooldownMs ? ["; rests ", duration(attempt.cooldownMs), " by ", sourceText(attempt.cooldownSource)] : "; no cooldown";
  return ["Rule ", h("code", {}, attempt.rule), attempt.verdict === "hop" ? ": on to the next target" : ": stop", rest];
}

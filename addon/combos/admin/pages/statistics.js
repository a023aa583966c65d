// Sums over time: requests and how they ended, hops by rule, tokens, latency, cost; and what decisions came to.

import { bars, columns } from "./charts.js";
import { button } from "./fields.js";
import { count, duration, percent, usd } from "./format.js";
import { icon } from "./icons.js";
import { to } from "./router.js";
import { app, attempt, changed, loadUsage } from "./state.js";
import { h } from "./vdom.js";

const RANGES = [["today", "Today"], ["7d", "7 days"], ["30d", "30 days"], ["all", "All"]];
const OUTCOMES = [["success", "served", "good"], ["fallback", "served after a hop", "hop"], ["failed", "not served", "bad"]];
const TOKENS = [["input", "input", "input"], ["output", "output", "output"]];

export function statisticsPage() {
  const usage = app.usage;
  return h("section", { class: "wide", "data-screen": true, tabindex: "-1", "aria-label": "Statistics" },
    h("header", { class: "head" }, h("h1", {}, "Statistics"), h("div", { class: "actions" }, ranges(() => attempt(loadUsage)))),
    app.budgets.length > 0 && budgets(),
    usage ? body(usage) : h("p", { class: "calm" }, "There are no statistics yet."));
}

/** What is spent of the configured budgets, by the day and by the month. */
function budgets() {
  const spent = ({ usd: money, usdLimit, tokens, tokensLimit }) => [
    usdLimit !== null && `${usd(money)} of ${usd(usdLimit)}`, tokensLimit !== null && `${count(tokens)} of ${count(tokensLimit)} tokens`,
  ].filter(Boolean).join(", ") || "no limit";
  return tableOf("Budgets", ["Budget", "Today", "This month", ""], app.budgets.map((row) => [
    `${row.kind}${row.name}`, `${row.name} (${row.kind})`, spent(row.day), spent(row.month),
    h("span", { class: `pill ${row.exhausted ? "out" : "ready"}` }, row.exhausted ? "spent" : "within")]));
}

/** Buttons that choose the window. */
export function ranges(load) {
  return h("div", { class: "segments", role: "group", "aria-label": "Window" },
    RANGES.map(([value, label]) => h("button", {
      key: value, type: "button", "aria-pressed": String(app.range === value), onclick: () => {
        app.range = value;
        changed();
        load();
      },
    }, label)), button("", load, { kind: "quiet small", icon: icon("refresh"), label: "Refresh" }));
}

function body(usage) {
  if (!usage.summary.requests) return h("p", { class: "calm" }, "No request in this window.");
  return [cards(usage.summary), byDay(usage.days), h("div", { class: "pair" }, rules(), latency()), comboTable(usage.combos), modelTable(usage.models), app.jev?.summary.decisions > 0 && jevPart(app.jev)];
}

export function cards(sum) {
  const served = sum.outcomes.success || 0;
  return h("dl", { class: "counters" }, [
    ["Requests", count(sum.requests), `${percent(served / sum.requests)} served`],
    ["Saved by a hop", count(sum.requestsWithFallback), `${count(sum.hops)} ${sum.hops === 1 ? "hop" : "hops"}`],
    ["Tokens", count(sum.totalTokens), `${count(sum.inputTokens)} in, ${count(sum.outputTokens)} out; ${sum.measuredAttempts} of ${sum.attempts} attempts measured`],
    ["Average duration", duration(sum.averageDurationMs), `first output ${duration(sum.averageFirstOutputMs)}`],
    ["Cost", usd(sum.costUsd), sum.pricedAttempts ? `${sum.pricedAttempts} attempts priced` : "no prices configured"],
  ].map(([label, value, note]) => h("div", { key: label }, h("dt", {}, label), h("dd", {}, value, h("small", {}, note)))));
}

export function byDay(known) {
  if (!known.length) return null;
  const days = padded(known);
  const label = (day) => day.slice(5).replace("-", "/");
  const outcomes = days.map((day) => {
    const good = day.outcomes.success || 0;
    const hopped = Math.min(day.requestsWithFallback, good);
    return { label: label(day.day), parts: { success: good - hopped, fallback: hopped, failed: day.requests - good } };
  });
  const tokens = days.map((day) => ({ label: label(day.day), parts: { input: day.inputTokens || 0, output: day.outputTokens || 0 } }));
  return h("div", { class: "pair" },
    h("section", { class: "card" }, h("h2", {}, "Requests by day"), columns("Requests by day", outcomes, OUTCOMES)),
    h("section", { class: "card" }, h("h2", {}, "Tokens by day"), columns("Tokens by day", tokens, TOKENS)));
}

const NO_DAY = { outcomes: {}, requests: 0, requestsWithFallback: 0, inputTokens: 0, outputTokens: 0 };
const DAYS_MAX = 92;

/** Days without a request are days too: from the start of the window, or the first one, until today. */
function padded(days) {
  const length = { "7d": 7, "30d": 30 }[app.range];
  const end = new Date();
  const start = length ? new Date(end.getFullYear(), end.getMonth(), end.getDate() - length + 1) : new Date(`${days[0].day}T00:00`);
  const byName = new Map(days.map((day) => [day.day, day]));
  const made = [];
  for (const at = start; at <= end; at.setDate(at.getDate() + 1)) {
    const name = [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
    made.push(byName.get(name) || { ...NO_DAY, day: name });
  }
  return made.slice(-DAYS_MAX);
}

/** Failures of the latest records by the rule that judged them. */
function rules() {
  const attempts = app.recent.flatMap((row) => row.attempts);
  const counts = new Map();
  for (const one of attempts) if (one.rule) counts.set(one.rule, (counts.get(one.rule) || 0) + 1);
  const rows = [...counts].sort((left, right) => right[1] - left[1]).slice(0, 10);
  return h("section", { class: "card" }, h("h2", {}, "Failures by rule"), h("p", { class: "hint" }, `Over the latest ${app.recent.length} requests.`),
    rows.length ? bars(rows, "bad") : h("p", { class: "calm" }, "No attempt failed."));
}

function latency() {
  const served = app.recent.filter((row) => row.outcome === "success" && row.durationMs !== null);
  const groups = new Map();
  for (const row of served) groups.set(row.resolvedModel, [...(groups.get(row.resolvedModel) || []), row.durationMs]);
  const rows = [...groups].map(([model, times]) => [model, middle(times), `${duration(middle(times))} · ${times.length}×`]).sort((left, right) => right[1] - left[1]);
  return h("section", { class: "card" }, h("h2", {}, "Median duration by target"), h("p", { class: "hint" }, `Over the latest ${served.length} served requests.`),
    rows.length ? bars(rows.slice(0, 10), "input") : h("p", { class: "calm" }, "Nothing was served yet."));
}

const middle = (values) => [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)];

function tableOf(title, heads, rows) {
  return h("section", { class: "card scroll", tabindex: "0", "aria-label": title, key: title }, h("h2", {}, title),
    h("table", { class: "numbers-table" },
      h("thead", {}, h("tr", {}, heads.map((head, index) => h("th", { key: head, scope: "col", class: index ? "num" : "" }, head)))),
      h("tbody", {}, rows.map(([key, first, ...cells]) => h("tr", { key }, h("th", { scope: "row" }, first), cells.map((cell, index) => h("td", { key: index, class: "num" }, cell)))))));
}

function comboTable(combos) {
  return tableOf("By combo", ["Combo", "Requests", "Served", "Saved by a hop", "Tokens", "Duration", "Cost"], combos.map((row) => [
    row.combo ?? "–", row.combo && app.live[row.combo] ? h("a", { href: to("combos", row.combo, "history") }, row.combo) : row.combo || "without a combo", count(row.requests),
    percent((row.outcomes.success || 0) / row.requests), count(row.requestsWithFallback), count(row.totalTokens), duration(row.averageDurationMs), usd(row.costUsd)]));
}

export function modelTable(models) {
  const total = models.reduce((sum, row) => sum + row.served, 0);
  return tableOf("By target", ["Target", "Attempts", "Served", "Share", "Failed", "Tokens", "First output", "Cost"], models.map((row) => [
    `${row.provider}/${row.model}`, `${row.provider}/${row.model}`, count(row.attempts), count(row.served), total ? percent(row.served / total) : "–", count(row.failed),
    count(row.totalTokens), duration(row.averageFirstOutputMs), usd(row.costUsd)]));
}

/** The statistics of decisions: cards, gates, picks by model. */
export function jevPart(jev) {
  const sum = jev.summary;
  return h("div", { key: "jev" },
    h("h2", { class: "part" }, "Decisions"),
    h("dl", { class: "counters" }, [
      ["Decisions", count(sum.decisions), `${sum.appliedDecisions} applied, ${sum.failOpenDecisions} failed open`],
      ["Tokens of models", count(sum.modelTotalTokens), `${sum.measuredModelAttempts} of ${sum.modelAttempts} sends measured`],
      ["Tokens of decisions", count(sum.decisionTotalTokens), `${sum.decisionUsageReported} of ${sum.decisions} reported`],
    ].map(([label, value, note]) => h("div", { key: label }, h("dt", {}, label), h("dd", {}, value, h("small", {}, note))))),
    h("p", { class: "meta" }, `${sum.successfulRequests} successful, ${sum.requestsWithModelFallback} with fallback, ${duration(sum.averageLatencyMs)} on average, confidence ${sum.averageConfidence ?? "–"}`),
    h("p", { class: "chips" }, jev.gates.map(({ gate, decisions }) => h("span", { key: gate, class: `chip ${gate === "apply" ? "good" : "bad"}` }, `${gate} ${decisions}`))),
    tableOf("Picks", ["Target", "Picks", "Efforts", "Attempts", "Input", "Output", "Reasoning", "Cache read", "Cache write", "Total"], jev.models.map((row) => [
      `${row.provider}/${row.model}`, row.overflow ? "others" : `${row.provider}/${row.model}`, count(row.picks), row.efforts.map(({ effort, picks }) => `${effort ?? "none"} × ${picks}`).join(", "),
      count(row.attempts), count(row.inputTokens), count(row.outputTokens), count(row.reasoningTokens), count(row.cacheReadTokens), count(row.cacheWriteTokens), count(row.totalTokens)])));
}


// Quota badges: what a provider's account has left, by window, and until when that may be believed.

import { button } from "./fields.js";
import { ago, instant, percent, usd } from "./format.js";
import { icon } from "./icons.js";
import { app, loadQuotas, now, providerOf } from "./state.js";
import { h } from "./vdom.js";

const WORDS = { available: "Available", exhausted: "Out of quota", unknown: "Quota unknown" };
const FRESH_MS = 30 * 60000;

/** The state of a provider: unknown when the evidence is old, not fit for routing, or two reports disagree. */
export function badgeState(provider) {
  const states = new Set(reportsOf(provider).map((report) => believed(report.routingQuota)));
  return states.size === 1 ? [...states][0] : "unknown";
}

const reportsOf = (provider) => app.quotas.filter((report) => report.provider === provider);

function believed({ state, updatedAt, validUntil }) {
  const holds = validUntil > now() && validUntil <= updatedAt + FRESH_MS;
  return state !== "unknown" && holds ? state : "unknown";
}

/** Over the usable targets of a combo or of a draft. */
export function comboBadgeState(combo) {
  const usable = combo.targets.filter(({ provider, model }) => provider && model && providerOf(provider) && !providerOf(provider).disabled);
  const states = usable.map(({ provider }) => badgeState(provider));
  if (!states.length) return "unknown";
  if (states.includes("available")) return "available";
  return states.includes("unknown") ? "unknown" : "exhausted";
}

/** A badge that opens to windows and resets. `place` makes its id unique on the screen. */
export function quotaBadge(provider, place) {
  if (!provider) return null;
  const state = badgeState(provider);
  const id = `quota-${place}`;
  return h("span", { class: "quota", key: `${id}-${provider}` },
    h("button", { type: "button", class: `badge ${state}`, popovertarget: id, "aria-label": `${WORDS[state]}: quota of ${provider}` }, WORDS[state]),
    h("div", { id, popover: "auto", class: "popover", ontoggle: (event) => event.newState === "open" && settle(event.target) }, details(provider, state)));
}

/** Beside its badge and inside the window, wherever the badge is. */
function settle(popover) {
  const badge = popover.previousSibling.getBoundingClientRect();
  const [width, height] = [popover.offsetWidth, popover.offsetHeight];
  const below = badge.bottom + 6 + height < innerHeight;
  popover.style.setProperty("left", `${Math.max(8, Math.min(badge.left, innerWidth - width - 8))}px`);
  popover.style.setProperty("top", `${below ? badge.bottom + 6 : Math.max(8, badge.top - height - 6)}px`);
}

function details(provider, state) {
  const reports = reportsOf(provider);
  return [
    h("p", { class: "popover-title" }, `${WORDS[state]} – ${provider}`),
    reports.length
      ? reports.map((report) => reportPart(report))
      : h("p", {}, "Nothing has reported a quota of this provider. It does not keep a target from being asked."),
    button("Ask again", () => loadQuotas(1), { kind: "small quiet", icon: icon("refresh") }),
  ];
}

function reportPart(report) {
  const rows = windows(report.quota);
  const until = report.routingQuota.validUntil;
  return h("div", { key: `${report.source}${report.account}`, class: "report" },
    h("p", { class: "hint" }, `${report.label}, ${ago(report.updatedAt, now())}`, until && `, holds until ${instant(until)}`),
    h("table", {}, h("tbody", {}, rows.map(([label, share, reset]) => h("tr", { key: label },
      h("th", { scope: "row" }, label),
      h("td", {}, share === null ? "–" : h("meter", { min: 0, max: 1, low: 0.5, high: 0.8, optimum: 0, value: share, "aria-label": `${label} used` })),
      h("td", {}, share === null ? "" : `${percent(share)} used`),
      h("td", {}, reset ? `resets ${instant(reset)}` : ""))))),
    report.quota.creditsUsd && h("p", {}, credits(report.quota.creditsUsd)));
}

function windows(quota) {
  const named = [["5 hours", "fiveHour"], ["Week", "weekly"], ["Month", "monthly"]]
    .filter(([, name]) => `${name}Percent` in quota || `${name}ResetAt` in quota)
    .map(([label, name]) => [label, part(quota[`${name}Percent`]), quota[`${name}ResetAt`]]);
  return [...named, ...(quota.customWindows || []).map((window) => [window.label, part(window.percent), window.resetAt])];
}

const part = (value) => (value === undefined || value === null ? null : value / 100);

function credits({ used, limit, remaining, unlimited }) {
  if (unlimited) return "Unlimited credits";
  const words = [remaining !== undefined && `${usd(remaining)} left`, used !== undefined && `${usd(used)} used`, limit !== undefined && `limit ${usd(limit)}`];
  return `Credits: ${words.filter(Boolean).join(", ")}`;
}

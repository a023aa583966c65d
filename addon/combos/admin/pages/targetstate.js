// How one target stands, in words and colour: ready, cooling until when and why, or out and why.

import { ago, clock, duration } from "./format.js";
import { now } from "./state.js";
import { h } from "./vdom.js";

const REASONS = {
  provider_missing: "provider is not configured",
  provider_disabled: "provider is disabled",
  decision_only: "serves decisions only",
  unsupported_by_target: "cannot speak this format",
  no_credentials: "no usable credentials",
  self_loop: "leads back to this proxy",
  encrypted_task: "cannot read encrypted tasks",
  quota: "quota is used up",
  budget: "budget is spent",
  tried: "was asked already",
  cooling: "cooling down",
};
const SOURCES = {
  "retry-after": "the target's Retry-After",
  "codex-reset": "the target's reset headers",
  configured: "cooldownMs of the combo",
  hold: "the length this failure has",
  "request-rate": "the length for request rates",
  default: "the default length",
};

/** `ready`, `cooling` or `out`: the class of everything that shows a target. */
export function standing(target) {
  if (isCooling(target)) return "cooling";
  return target.eligible || target.reason === "cooling" ? "ready" : "out";
}

export const isCooling = (target) => Boolean(target.coolingUntil) && target.coolingUntil > now();
export const leftMs = (target) => Math.max(0, target.coolingUntil - now());
export const reasonText = (reason) => REASONS[reason] || reason;
export const sourceText = (source) => SOURCES[source] || source;

export function pill(target) {
  const kind = standing(target);
  const words = { ready: "Ready", cooling: `Cooling ${clock(leftMs(target))}`, out: reasonText(target.reason) }[kind];
  return h("span", { class: `pill ${kind}` }, h("span", { class: "dot", "aria-hidden": "true" }), words);
}

/** Why a target cools: the rule that fired and the signal that set the length. */
export function cooldownText({ cooldown }) {
  const status = cooldown.status ? `status ${cooldown.status}, ` : "";
  return [`${status}rule `, h("code", {}, cooldown.rule), cooldown.source && [", by ", sourceText(cooldown.source)]];
}

export function lastErrorText(error) {
  const what = [error.status && `status ${error.status}`, error.code, !error.status && error.result].filter(Boolean).join(", ");
  return [what || "failed", ", rule ", h("code", {}, error.rule), `, ${ago(error.at, now())}`];
}

/** A row of small blocks, one per target, for lists. */
export function strip(combo) {
  if (!combo) return null;
  const words = combo.targets.map((target) => `${target.target} ${standing(target) === "cooling" ? `cooling, ${duration(leftMs(target))} left` : standing(target)}`);
  return h("span", { class: "strip", role: "img", "aria-label": words.join("; ") },
    combo.targets.map((target) => h("span", { class: `${standing(target)} ${target.target === combo.next ? "next" : ""}`, title: target.target })));
}

// One combo as it stands: what the next request would do, and every target with why it is out and until when.

import { clearCooldowns } from "./actions.js";
import { button } from "./fields.js";
import { clock, duration, percent } from "./format.js";
import { icon } from "./icons.js";
import { quotaBadge } from "./quota.js";
import { to } from "./router.js";
import { app, comboOf } from "./state.js";
import { cooldownText, isCooling, lastErrorText, leftMs, pill, reasonText, standing } from "./targetstate.js";
import { h } from "./vdom.js";

export function livePanel(combo) {
  const live = app.live[combo.id];
  if (!live) return h("p", { class: "calm" }, "This combo is not in force: see the problems of the configuration file.");
  return [
    next(live),
    h("ol", { class: "targets-live", "aria-label": "Targets" }, live.targets.map((target, index) => row(live, target, index))),
    foot(live),
  ];
}

/** The next request in a sentence, target after target. */
function next(live) {
  const plan = app.plans[live.id];
  return h("section", { class: "card plan", "aria-label": "The next request" },
    h("h2", {}, "The next request"),
    plan ? planText(plan, live) : h("p", { class: "calm" }, "…"));
}

export function planText(plan, live = plan) {
  if (plan.action === "refuse") return h("p", { class: "bad" }, "is refused: 503 ", h("code", {}, "combo_unavailable"), backIn(live));
  if (plan.action === "wait") return h("p", {}, `is held for ${duration(plan.waitMs)}, until a target is back.`);
  if (!plan.order.length) return h("p", {}, "is drawn at random, by weight, among the targets that are ready.");
  const [first, ...others] = plan.order;
  const verb = plan.strategy === "jev" ? "is decided by the decision service; if that fails it goes to " : "goes to ";
  return [
    h("p", {}, verb, h("b", { class: "target" }, first), ".", others.length > 0 && " If that fails before it has said anything:"),
    others.length > 0 && h("ol", { class: "path", start: 2 }, others.map((key) => h("li", { key }, icon("arrow"), h("b", { class: "target" }, key)))),
  ];
}

function backIn(live) {
  const cooling = live.targets.filter(isCooling).map(leftMs);
  return cooling.length ? `, until the first target is back in ${clock(Math.min(...cooling))}.` : ".";
}

function row(live, target, index) {
  const kind = standing(target);
  const served = share(live, target);
  return h("li", { key: target.target, class: `target-live ${kind}` },
    h("div", { class: "line" },
      h("span", { class: "place", "aria-label": `Target ${index + 1}` }, index + 1),
      h("span", { class: "name" }, target.model, h("span", { class: "meta" }, `${target.provider}${target.dialect ? ` · ${target.dialect}` : ""}`)),
      h("span", { class: "flags" },
        target.target === live.next && h("span", { class: "flag next" }, "next"),
        target.active && live.strategy === "round-robin" && h("span", { class: "flag" }, `in turn ${live.batch}/${live.stickyLimit}`),
        target.lastResort && h("span", { class: "flag" }, "last resort"),
        quotaBadge(target.provider, `live-${index}`),
        pill(target))),
    isCooling(target) && cooling(live, target),
    kind === "out" && h("p", { class: "why" }, `Left out: ${reasonText(target.reason)}.`),
    target.lastError && h("p", { class: "why" }, icon("alert"), h("span", {}, "Last error: ", lastErrorText(target.lastError))),
    numbers(live, target, served));
}

function cooling(live, target) {
  const left = leftMs(target);
  const whole = app.feed.find((event) => event.kind === "cooldown" && event.target === target.target && event.combo === live.id)?.ms || Math.max(left, target.cooldown.leftMs);
  return h("div", { class: "cooling-bar" },
    h("p", { class: "why" }, h("b", { class: "countdown", "data-countdown": target.target }, clock(left)), h("span", {}, " left: ", cooldownText(target), "."),
      button("End now", () => clearCooldowns(live.id, target.target), { kind: "small", label: `End the cooldown of ${target.target}` })),
    h("progress", { max: whole, value: Math.min(left, whole), "aria-label": `Cooldown of ${target.target}` }));
}

/** Served requests by target: since the rotation began, or those on record when the history was loaded. */
function share(live, target) {
  const models = app.history[live.id]?.usage?.models || [];
  const total = models.reduce((sum, row) => sum + row.served, 0);
  if (total) {
    const mine = models.find((row) => row.provider === target.provider && row.model === target.model)?.served || 0;
    return { mine, total, words: `(${total} on record)` };
  }
  const sum = live.targets.reduce((all, one) => all + one.successes, 0);
  return sum ? { mine: target.successes, total: sum, words: "since the combo was saved" } : null;
}

function numbers(live, target, served) {
  const cells = [
    target.share !== null && ["Weight", `${target.weight} (${percent(target.share)})`],
    served && ["Traffic", `${percent(served.mine / served.total)} ${served.words}`],
    served && ["Served", String(served.mine)],
    live.strategy === "round-robin" && ["Rotation position", String(target.position)],
  ].filter(Boolean);
  if (!cells.length) return null;
  return h("div", { class: "numbers" },
    h("dl", {}, cells.map(([label, value]) => h("div", { key: label }, h("dt", {}, label), h("dd", {}, value)))),
    served && h("span", { class: "sharebar", "aria-hidden": "true" }, h("span", { style: { width: `${(served.mine / served.total) * 100}%` } })));
}

function foot(live) {
  const cooling = live.targets.some(isCooling);
  return h("p", { class: "actions start" },
    cooling && button("End all cooldowns of this combo", () => clearCooldowns(live.id), { kind: "small" }),
    h("a", { class: "button small quiet", href: to("combos", live.id, "edit") }, "Configure"),
    comboOf(live.id)?.strategy === "jev" && h("a", { class: "button small quiet", href: to("combos", live.id, "history") }, "Decisions"));
}

// The providers: what they are, whether they can be used, a test of each; add, change, disable, remove.

import { call, query } from "./api.js";
import { button } from "./fields.js";
import { duration, plural } from "./format.js";
import { icon } from "./icons.js";
import { providerDialog } from "./providerform.js";
import { quotaBadge } from "./quota.js";
import { app, attempt, changed, loadConfiguration, loadLive, toast } from "./state.js";
import { reasonText } from "./targetstate.js";
import { h } from "./vdom.js";

export function providersPage() {
  return h("section", { class: "wide", "data-screen": true, tabindex: "-1", "aria-label": "Providers" },
    h("header", { class: "head" }, h("h1", {}, "Providers ", h("span", { class: "count" }, app.providers.length)),
      h("div", { class: "actions" },
        button("Test all", () => app.providers.filter((one) => !one.disabled).forEach(test), { kind: "small" }),
        button("Add provider", () => providerDialog(null), { kind: "primary small", icon: icon("plus") }))),
    h("ul", { class: "provider-cards" }, app.providers.map(card)),
    !app.providers.length && h("p", { class: "calm" }, "There is no provider yet."));
}

function card(provider) {
  const used = app.combos.filter((combo) => combo.decisionProvider === provider.name || combo.targets.some((target) => target.provider === provider.name));
  return h("li", { key: provider.name, class: `card ${provider.disabled ? "off" : ""}` },
    h("div", { class: "row" },
      h("h2", {}, provider.name, provider.isDefault && h("span", { class: "flag" }, "default")),
      quotaBadge(provider.name, `provider-${app.providers.indexOf(provider)}`), usability(provider)),
    h("dl", { class: "facts" }, facts(provider, used).map(([label, value]) => h("div", { key: label }, h("dt", {}, label), h("dd", {}, value)))),
    result(app.tests[provider.name]),
    h("div", { class: "actions start" },
      button("Test", () => test(provider), { kind: "small", label: `Test ${provider.name}`, disabled: app.tests[provider.name] === "running" }),
      button("Change", () => providerDialog(provider), { kind: "small quiet", label: `Change ${provider.name}` }),
      button(provider.disabled ? "Enable" : "Disable", () => toggle(provider), { kind: "small quiet", label: `${provider.disabled ? "Enable" : "Disable"} ${provider.name}` }),
      button("Remove", () => askRemove(provider), { kind: "small quiet danger", label: `Remove ${provider.name}` })));
}

function usability(provider) {
  if (provider.disabled) return h("span", { class: "pill none" }, "Disabled");
  if (provider.unusable) return h("span", { class: "pill out" }, h("span", { class: "dot", "aria-hidden": "true" }), reasonText(provider.unusable));
  return h("span", { class: "pill ready" }, h("span", { class: "dot", "aria-hidden": "true" }), "Usable");
}

function facts(provider, used) {
  const lists = { static: "as configured", failed: `cannot be read: ${provider.discovery?.error}`, pending: "not read yet", known: plural(provider.discovery?.models || 0, "model") };
  return [
    ["Address", h("code", {}, provider.baseUrl)],
    ["Speaks", provider.adapter],
    ["Credentials", { key: provider.hasApiKey ? "a configured key" : "its environment variable", forward: "the caller's own", oauth: "a stored token", local: "none needed" }[provider.authMode]],
    ["Models", [provider.models.length > 0 && `${provider.models.slice(0, 6).join(", ")}${provider.models.length > 6 ? "…" : ""} · `, lists[provider.discovery?.status] || ""]],
    ["Used by", used.length ? used.map((combo) => combo.id).join(", ") : "no combo"],
  ];
}

function result(test) {
  if (!test) return null;
  if (test === "running") return h("p", { class: "test", role: "status" }, "Asking for its model list…");
  if (test.applicable === false) return h("p", { class: "test", role: "status" }, `Not testable: ${test.reason.replaceAll("_", " ")}.`);
  if (test.ok) return h("p", { class: "test good", role: "status" }, icon("check"), ` Answers in ${duration(test.latencyMs)}${test.models ? ` with ${plural(test.models, "model")}` : ""}.`);
  return h("p", { class: "test bad", role: "status" }, icon("alert"), ` ${test.error}`);
}

async function test(provider) {
  app.tests[provider.name] = "running";
  changed();
  await attempt(async () => {
    app.tests[provider.name] = await call("POST", query("/api/providers/test", { name: provider.name })).catch((error) => {
      if (error.status === 401) throw error;
      return { ok: false, error: error.message };
    });
  });
}

function toggle(provider) {
  return attempt(async () => {
    await call("PATCH", query("/api/providers", { name: provider.name }), { disabled: provider.disabled ? null : true });
    await reload();
    toast(`${provider.name} is ${provider.disabled ? "enabled" : "disabled"}.`, "good", { label: "Undo", run: () => toggle({ ...provider, disabled: !provider.disabled }) });
  });
}

async function reload() {
  await loadConfiguration();
  await loadLive();
}

function askRemove(provider) {
  app.dialog = {
    title: `Remove ${provider.name}?`,
    body: () => h("p", {}, "Its address and its key are removed from the file. This cannot be undone here: keys are never shown."),
    actions: [{ label: "Remove", kind: "danger", run: () => attempt(async () => {
      await call("DELETE", query("/api/providers", { name: provider.name }));
      await reload();
      toast(`${provider.name} is removed.`, "good");
    }) }],
  };
  changed();
}

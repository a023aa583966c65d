// The part of the form that is about decisions: who decides, how long that may take, and a trial of it.

import { call } from "./api.js";
import { edit } from "./draft.js";
import { bound, shownProblems } from "./editor.js";
import { button, choiceField, numberField, problemList, selectField, textField } from "./fields.js";
import { duration } from "./format.js";
import { app, attempt, changed } from "./state.js";
import { h } from "./vdom.js";

const ISSUES = { disabled: "disabled", endpoint: "its address does not end in /systemone", model: "has no model" };

/** TypeSafe, a System One server, or a model: the one whose field is set, or that was just chosen. */
function methodOf(draft) {
  const { decisionProvider, decisionModel } = draft.value;
  if (decisionModel !== null) return "model";
  return decisionProvider && decisionProvider !== "jev" ? "systemone" : draft.method === "systemone" ? "systemone" : "typesafe";
}

export function decisionSection(draft) {
  const method = methodOf(draft);
  return h("section", { class: "card", key: "decision" },
    h("h2", {}, "Decision"),
    h("p", { class: "hint" }, "Asked once for each request, for the first target and its effort. When it fails or takes too long, the first eligible target is used; later targets are asked in order, without a decision."),
    h("div", { class: "fields" },
      choiceField({
        name: `${draft.name}.method`, legend: "Who decides", value: method, onchange: (value) => choose(draft, value),
        options: [["typesafe", "TypeSafe JEV", "The hosted service; needs its key."], ["systemone", "System One server", "A configured jev-decision provider."], ["model", "A model", "Any configured route."]],
      }),
      method === "systemone" && serverField(draft),
      method === "model" && bound(draft, "decisionModel", textField, { label: "Decision model", mono: true, list: "decision-models", placeholder: "ollama/qwen3:4b", hint: "provider/model, an alias, or a combo that is not JEV itself." }),
      method === "model" && h("datalist", { id: "decision-models" }, app.models.filter((row) => !row.disabled).map((row) => h("option", { key: row.namespaced, value: row.namespaced }))),
      bound(draft, "decisionTimeoutMs", numberField, { label: "Decision timeout", unit: "ms", placeholder: "4000", hint: "1,000 to 120,000; 4,000 when empty." })),
    method === "typesafe" && problemList("decision", shownProblems(draft, "decisionProvider")),
    trial(draft));
}

function serverField(draft) {
  const known = app.services.map((row) => [row.id, row.usable ? `${row.id} – ${row.url}` : `${row.id} (${ISSUES[row.issue] || "not usable"})`, !row.usable]);
  return bound(draft, "decisionProvider", selectField, {
    label: "Server", options: [["", known.length ? "Choose…" : "none is configured"], ...known],
    hint: known.length ? null : "Add a provider with the adapter jev-decision first.",
  });
}

function choose(draft, method) {
  draft.method = method;
  edit(draft, (value) => {
    value.decisionModel = method === "model" ? value.decisionModel ?? "" : null;
    value.decisionProvider = method === "systemone" ? app.services.find((row) => row.usable)?.id ?? null : null;
  });
  changed();
}

function trial(draft) {
  const result = app.tests[`decision ${draft.name}`];
  return h("p", { class: "trial" },
    button("Test the decision", () => run(draft), { kind: "small", disabled: result === "running" }),
    h("span", { role: "status", class: result?.ok ? "good" : result?.ok === false ? "bad" : "" }, words(result)));
}

function words(result) {
  if (!result) return " May cost a call.";
  if (result === "running") return " Asking…";
  if (result.error) return ` ${result.error}`;
  const effort = result.effort ? `, effort ${result.effort}` : "";
  return ` ${result.ok ? "Decided" : `Failed open (${result.gate})`} by ${result.backend} in ${duration(result.latencyMs)}${effort}.`;
}

async function run(draft) {
  const key = `decision ${draft.name}`;
  const { decisionProvider, decisionModel, decisionTimeoutMs } = draft.value;
  const wanted = Object.fromEntries(Object.entries({ decisionProvider, decisionModel, decisionTimeoutMs }).filter(([, value]) => value));
  app.tests[key] = "running";
  changed();
  await attempt(async () => {
    app.tests[key] = await call("POST", "/api/combos/decision-test", wanted).catch((error) => {
      if (error.status === 401) throw error;
      return { ok: false, error: error.message };
    });
  });
}

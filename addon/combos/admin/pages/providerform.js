// The form of a provider, new or known. A key goes out and never comes back: an empty field leaves it as it is.

import { call, get, query } from "./api.js";
import { button, checkField, problemList, selectField, textField } from "./fields.js";
import { app, attempt, changed, loadConfiguration, loadLive, toast } from "./state.js";
import { h } from "./vdom.js";

const ADAPTERS = ["openai-responses", "openai-chat", "anthropic", "google", "azure-openai", "ollama-native", "jev-decision"];
const AUTH = [["key", "a key"], ["forward", "the caller's own"], ["oauth", "a stored token"], ["local", "none needed"]];

/** Open the form; `provider` is a row of the list, null for a new one. */
export async function providerDialog(provider) {
  const form = provider
    ? { ...pick(provider), isNew: false, problems: [] }
    : { name: "", adapter: "openai-chat", baseUrl: "", authMode: "key", apiKey: "", defaultModel: "", models: "", allowPrivateNetwork: false, extra: {}, isNew: true, problems: [] };
  if (form.isNew) await attempt(async () => { form.presets = (await get("/api/providers/presets")).presets; });
  app.dialog = { title: provider ? `Change ${provider.name}` : "Add a provider", wide: true, body: (close) => body(form, close) };
  changed();
}

function pick({ name, adapter, baseUrl, authMode, defaultModel, models, allowPrivateNetwork }) {
  return { name, adapter, baseUrl, authMode, apiKey: "", defaultModel: defaultModel || "", models: models.join(", "), allowPrivateNetwork, extra: {} };
}

function body(form, close) {
  const set = (name) => (value) => {
    form[name] = value;
    changed();
  };
  const at = (name) => form.problems.filter(({ path }) => path.endsWith(`.${name}`) || path === name).map(({ message }) => message);
  const text = (name, label, more = {}) => textField({ name: `provider.${name}`, label, value: form[name], onchange: set(name), problems: at(name), mono: true, ...more });
  const named = new Set(["name", "adapter", "baseUrl", "authMode", "apiKey", "defaultModel", "models", "allowPrivateNetwork"]);
  const others = form.problems.filter(({ path }) => ![...named].some((name) => path.endsWith(`.${name}`) || path === name));
  return h("form", { class: "editor", onsubmit: (event) => submit(event, form, close) },
    problemList("provider-form", others.map(({ path, message }) => (path ? `${path}: ${message}` : message))),
    h("div", { class: "fields" },
      form.isNew && selectField({ name: "provider.preset", label: "Vendor", value: form.preset, options: [["", "any other"], ...(form.presets || []).map(({ id }) => [id, id])], onchange: (id) => adopt(form, id) }),
      form.isNew && text("name", "Name", { placeholder: "openai" }),
      selectField({ name: "provider.adapter", label: "Speaks", value: form.adapter, options: ADAPTERS.map((name) => [name, name]), onchange: set("adapter"), problems: at("adapter") }),
      text("baseUrl", "Address", { placeholder: "https://api.example.com/v1", wide: true }),
      selectField({ name: "provider.authMode", label: "Credentials", value: form.authMode, options: AUTH, onchange: set("authMode"), problems: at("authMode") }),
      form.authMode === "key" && text("apiKey", "Key", { type: "password", hint: form.isNew ? "Better a reference such as ${OPENAI_API_KEY}: then the file holds no key." : "Empty: stays as it is." }),
      text("defaultModel", "Default model"),
      text("models", "Models", { hint: "Separated by commas; beside those the provider lists itself." }),
      checkField({ name: "provider.allowPrivateNetwork", label: "May be on this machine or a private network", checked: form.allowPrivateNetwork, onchange: set("allowPrivateNetwork"), problems: at("allowPrivateNetwork") })),
    h("div", { class: "actions" }, button("Cancel", close, { kind: "quiet" }), h("button", { type: "submit", class: "button primary" }, form.isNew ? "Add" : "Save")));
}

function adopt(form, id) {
  const preset = form.presets.find((one) => one.id === id);
  form.preset = id;
  if (preset) {
    const { adapter, baseUrl, authMode = "key", apiKey = "", allowPrivateNetwork = false, ...extra } = preset.provider;
    Object.assign(form, { name: form.name || id, adapter, baseUrl, authMode, apiKey, allowPrivateNetwork, extra });
  }
  changed();
}

async function submit(event, form, close) {
  event.preventDefault();
  try {
    if (form.isNew) await call("POST", "/api/providers", { name: form.name, provider: document(form, false) });
    else await call("PATCH", query("/api/providers", { name: form.name }), document(form, true));
  } catch (error) {
    if (error.status === 401) throw error;
    form.problems = error.problems?.length ? error.problems : [{ path: error.code?.startsWith("name") || error.code === "provider_exists" ? "name" : "", message: error.message }];
    changed();
    return;
  }
  close();
  await attempt(async () => {
    await loadConfiguration();
    await loadLive();
  });
  toast(`${form.name} is ${form.isNew ? "added" : "saved"}.`, "good");
}

/** The provider object; in a change, null takes a field away. */
function document(form, isChange) {
  const models = form.models.split(",").map((one) => one.trim()).filter(Boolean);
  const made = {
    ...form.extra, adapter: form.adapter, baseUrl: form.baseUrl, authMode: form.authMode === "key" ? null : form.authMode,
    defaultModel: form.defaultModel.trim() || null, models: models.length ? models : null, allowPrivateNetwork: form.allowPrivateNetwork || null,
  };
  if (form.apiKey) made.apiKey = form.apiKey;
  if (isChange) return made;
  return Object.fromEntries(Object.entries(made).filter(([, value]) => value !== null));
}

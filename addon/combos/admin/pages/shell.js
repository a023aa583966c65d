// The frame of every screen: name, navigation, connection, messages, dialogs; and the question for the token.

import { setToken } from "./api.js";
import { combosPage } from "./combos.js";
import { button, field, idOf } from "./fields.js";
import { icon, logo } from "./icons.js";
import { providersPage } from "./providers.js";
import { requestsPage } from "./requests.js";
import { to } from "./router.js";
import { app, changed, dismiss, signOut, start } from "./state.js";
import { statisticsPage } from "./statistics.js";
import { h } from "./vdom.js";

const PAGES = [
  ["combos", "Combos", combosPage],
  ["requests", "Requests", requestsPage],
  ["statistics", "Statistics", statisticsPage],
  ["providers", "Providers", providersPage],
];
const LINKS = { live: ["live", "Live"], down: ["down", "Reconnecting"], connecting: ["wait", "Connecting"] };

export function shell(route) {
  if (app.needsToken) return tokenScreen();
  const [, title, page] = PAGES.find(([name]) => name === route.page);
  document.title = route.id ? `${route.id} – Combos` : `${title} – Combos`;
  return [
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to content"),
    header(route),
    notices(),
    h("main", { id: "main", tabindex: "-1", class: `page ${route.id ? "inner" : ""}` }, app.ready ? page(route) : waiting()),
    toasts(),
    dialog(),
  ];
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function header(route) {
  const [kind, words] = LINKS[app.link];
  return h("header", { class: "top" },
    h("a", { class: "brand", href: to("combos") }, logo(), h("span", {}, "Combos")),
    h("nav", { "aria-label": "Pages" }, PAGES.map(([name, label]) => h("a", {
      key: name, href: to(name), "aria-current": route.page === name ? "page" : null,
    }, label))),
    h("div", { class: "status" },
      h("span", { class: `link ${kind}`, role: "status" }, h("span", { class: "dot", "aria-hidden": "true" }), words),
      themeButton(),
      button("Sign out", () => signOut(), { kind: "quiet small" })));
}

function themeButton() {
  const next = { auto: "light", light: "dark", dark: "auto" }[app.theme];
  return button("", () => {
    app.theme = next;
    localStorage.setItem("combos-theme", next);
    changed();
  }, { kind: "quiet small", icon: icon("sun"), label: `Colours: ${app.theme}. Change to ${next}`, title: `Colours: ${app.theme}` });
}

function notices() {
  const problems = app.config?.problems || [];
  if (!problems.length && app.config?.writable !== false) return null;
  return h("section", { class: "banner bad", role: "alert" },
    h("strong", {}, "The configuration file has problems. The last good configuration stays in force, and nothing is written until they are mended."),
    h("ul", {}, problems.map(({ path, message }) => h("li", {}, h("code", {}, path || app.config.path), " ", message))));
}

function waiting() {
  return h("p", { class: "waiting", role: "status" }, "Loading…");
}

function toasts() {
  return h("div", { class: "toasts", role: "status", "aria-live": "polite" }, app.toasts.map((toast) => h("div", { key: toast.id, class: `toast ${toast.kind}` },
    h("span", {}, toast.text),
    toast.action && button(toast.action.label, () => {
      dismiss(toast.id);
      toast.action.run();
    }, { kind: "small" }),
    button("", () => dismiss(toast.id), { kind: "quiet small close", label: "Dismiss" }))));
}

function dialog() {
  const shown = app.dialog;
  if (!shown) return null;
  // A dialog that is closed, not just taken away, gives the focus back to where it came from.
  const close = () => {
    if (app.dialog !== shown) return;
    app.dialog = null;
    document.querySelector("dialog[open]")?.close();
    changed();
  };
  return h("dialog", { key: shown.title, class: shown.wide ? "wide" : "", "aria-labelledby": "dialog-title", onmount: (dom) => dom.showModal(), onclose: close, oncancel: close },
    h("h2", { id: "dialog-title" }, shown.title),
    shown.body(close),
    shown.actions && h("div", { class: "actions" },
      button("Cancel", close, { kind: "quiet" }),
      shown.actions.map(({ label, kind, run }) => button(label, () => {
        close();
        run();
      }, { kind }))));
}

function tokenScreen() {
  document.title = "Combos";
  const submit = (event) => {
    event.preventDefault();
    setToken(document.getElementById(idOf("token")).value);
    app.tokenError = null;
    start();
  };
  return h("main", { class: "gate", key: "gate" },
    h("form", { onsubmit: submit },
      h("h1", {}, logo(), "Combos"),
      h("p", {}, "This page manages providers and their keys, so it asks for the admin token. ", h("code", {}, "ocx dashboard"), " opens it with the token; the token itself is in the file ", h("code", {}, "admin-api-token"), " beside the configuration."),
      field({
        name: "token", label: "Admin token", problems: app.tokenError ? [app.tokenError] : [],
        control: (id, attributes) => h("input", { id, type: "password", autocomplete: "off", class: "mono", required: true, onmount: (dom) => dom.focus(), ...attributes }),
      }),
      h("button", { type: "submit", class: "button primary" }, "Open the dashboard"),
      h("p", { class: "hint" }, "It is kept in this tab only, until the tab is closed.")));
}

// Starts the page: the token, the address, the drawing loop, the clock, the keys.

import { adoptTokenFromAddress } from "./api.js";
import { saveDraft } from "./actions.js";
import { isDirty, redo, undo } from "./draft.js";
import { route } from "./router.js";
import { shell } from "./shell.js";
import { app, attempt, changed, followVisibility, loadHistory, loadLog, loadPlan, loadQuotas, loadRecent, loadUsage, now, onEvents, start, watch } from "./state.js";
import { render } from "./vdom.js";

const SECOND_MS = 1000;

function draw() {
  document.documentElement.dataset.theme = app.theme;
  render(document.getElementById("app"), shell(route()));
}

/** What the shown page needs besides combos and live state. */
async function load() {
  const { page, id, tab } = route();
  if (!app.ready) return;
  if (page === "requests") await loadLog();
  if (page === "statistics") await Promise.all([loadUsage(), loadRecent()]);
  if (page === "combos" && id && tab === "live" && app.live[id]) await loadPlan(id);
  if (page === "combos" && id && tab === "history") await loadHistory(id);
  if (page === "combos" && !id) {
    app.logCombo = "";
    await loadLog();
  }
}

function arrived() {
  changed();
  attempt(load);
  window.scrollTo(0, 0);
}

/** Screen readers hear and the keyboard starts at the new screen, not at the link that led to it. */
function focusScreen() {
  queueMicrotask(() => document.querySelector("[data-screen]")?.focus({ preventScroll: true }));
}

function keys(event) {
  const draft = app.drafts[route().id ?? ""];
  if (!draft || route().tab !== "edit" || !(event.ctrlKey || event.metaKey)) return;
  const key = event.key.toLowerCase();
  const work = { z: event.shiftKey ? redo : undo, y: redo, s: saveDraft }[key];
  if (!work) return;
  event.preventDefault();
  work(draft);
}

function tick() {
  if (app.ready && app.quotasDue <= now()) {
    app.quotasDue = Infinity;
    attempt(loadQuotas);
  }
  const cooling = Object.values(app.live).some((combo) => combo.targets.some((target) => target.coolingUntil));
  if (app.ready && !document.hidden && (cooling || route().page === "combos")) changed();
}

/** What was typed and not saved would go with the page: the browser asks first. */
function leaving(event) {
  if (Object.values(app.drafts).some((draft) => draft.touched && isDirty(draft))) event.preventDefault();
}

adoptTokenFromAddress();
watch(draw);
onEvents(load);
followVisibility();
addEventListener("hashchange", () => {
  arrived();
  focusScreen();
});
addEventListener("keydown", keys);
addEventListener("beforeunload", leaving);
setInterval(tick, SECOND_MS);
draw();
start().then(arrived);

// What the page knows: the configuration, the live state, what is typed and not saved. Loads it and keeps it fresh.

import { ApiError, call, get, query, setToken, token } from "./api.js";
import { listen } from "./stream.js";

export const app = {
  needsToken: !token(), tokenError: null, link: "connecting", ready: false, skew: 0,
  combos: [], live: {}, plans: {}, providers: [], models: [], quotas: [], config: null,
  log: null, logCombo: "", recent: [], budgets: [], usage: null, jev: null, history: {}, range: "7d",
  feed: [], drafts: {}, toasts: [], dialog: null, filter: "", opened: {}, tests: {}, services: [], quotasDue: Infinity,
  theme: localStorage.getItem("combos-theme") || "auto",
};

const FEED_MAX = 60;
const LOG_PAGE = 50;
const REFRESH_MS = 120;
const POLL_MS = 3000;
const TOAST_MS = 8000;
const watchers = [];
let planned = false;
let stop = null;
let polling = null;
let toastNumber = 0;

/** Draw again soon; many changes make one drawing. */
export function changed() {
  if (planned) return;
  planned = true;
  queueMicrotask(() => {
    planned = false;
    watchers.forEach((watcher) => watcher());
  });
}

export const watch = (watcher) => watchers.push(watcher);

/** The server's clock, epoch milliseconds. */
export const now = () => Date.now() + app.skew;

export const comboOf = (id) => app.combos.find((combo) => combo.id === id);
export const providerOf = (name) => app.providers.find((provider) => provider.name === name);

/** A short message; `action` is `{label, run, about}`, the last one a combo. */
export function toast(text, kind = "info", action = null) {
  const made = { id: ++toastNumber, text, kind, action };
  app.toasts = [...app.toasts.slice(-2), made];
  setTimeout(() => dismiss(made.id), action ? TOAST_MS * 2 : TOAST_MS);
  changed();
}

/** Take back offers to undo that a later change of this combo's name has made wrong. */
export function dropUndo(id) {
  app.toasts = app.toasts.filter((one) => one.action?.about !== id);
  changed();
}

export function dismiss(id) {
  app.toasts = app.toasts.filter((one) => one.id !== id);
  changed();
}

/** Run something that asks the server; a refusal becomes a message. Answers whether it went well. */
export async function attempt(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) signOut("This token is not accepted.");
    else toast(error.message, "bad");
    return false;
  } finally {
    changed();
  }
}

export function signOut(reason = null) {
  setToken("");
  stop?.();
  stop = null;
  Object.assign(app, { needsToken: true, tokenError: reason, ready: false });
  changed();
}

/** Load everything and listen. A token that is refused leads back to the question for it. */
export async function start() {
  app.needsToken = !token();
  changed();
  if (app.needsToken) return;
  const went = await attempt(async () => {
    await loadConfiguration();
    await loadLive();
    app.ready = true;
    app.tokenError = null;
  });
  if (went) connect();
  else if (!app.needsToken) setTimeout(start, POLL_MS);
}

export async function loadConfiguration() {
  const [combos, providers, models, config, services] = await Promise.all([
    get("/api/combos"), get("/api/providers"), get("/api/models"), get("/api/config"), get("/api/combos/decision-discovery"),
  ]);
  Object.assign(app, { combos: combos.combos, providers, models, config, services: services.configured });
  await loadQuotas();
  changed();
}

/** The reports, and when the first of them ceases to hold. */
export async function loadQuotas(refresh) {
  app.quotas = (await optional(query("/api/provider-quotas", { refresh }), { reports: [] })).reports;
  app.quotasDue = Math.min(...app.quotas.map((report) => report.routingQuota.validUntil || Infinity).filter((until) => until > now()));
  changed();
}

export async function loadLive() {
  const answer = await get("/api/combos/state");
  app.skew = answer.generatedAt - Date.now();
  app.live = Object.fromEntries(answer.combos.map((combo) => [combo.id, combo]));
  changed();
}

export async function loadPlan(id) {
  app.plans[id] = await call("POST", "/api/combos/dry-run", { id });
  changed();
}

/** The latest records of `app.logCombo`, or of all; `more` adds the next older ones. What was loaded before is kept. */
export async function loadLog(more = false) {
  const [combo, known] = [app.logCombo, app.log?.combo === app.logCombo ? app.log : null];
  const before = more && known?.cursor ? known.cursor : undefined;
  const page = await optional(query("/api/logs", { limit: LOG_PAGE, before, combo }), { logs: [], total: 0, cursor: null });
  if (combo === app.logCombo) app.log = { ...(before ? older(known, page) : newer(known, page)), combo };
  changed();
}

const older = (known, page) => ({ ...page, logs: [...known.logs, ...page.logs] });

function newer(known, page) {
  const last = page.logs.at(-1)?.number;
  if (!known?.logs.length || known.logs[0].number < last) return page;
  const rest = known.logs.filter((row) => row.number < last);
  return { ...page, logs: [...page.logs, ...rest], cursor: rest.length ? known.cursor : page.cursor };
}

/** The latest records, as many as one answer holds, for what the sums do not tell. */
export async function loadRecent() {
  app.recent = (await optional(query("/api/logs", { limit: 500 }), { logs: [] })).logs;
  changed();
}

export async function loadUsage() {
  app.budgets = (await optional("/api/budgets", { budgets: [] })).budgets;
  app.usage = await optional(query("/api/usage", { range: app.range }), null);
  const decides = app.combos.some((combo) => combo.strategy === "jev");
  app.jev = decides ? await optional(query("/api/usage", { jev: 1, range: app.range }), null) : null;
  changed();
}

export async function loadHistory(id) {
  const wanted = [
    optional(query("/api/usage", { range: app.range, combo: id }), null),
    optional(query("/api/logs", { limit: 20, combo: id }), { logs: [] }),
  ];
  if (comboOf(id)?.strategy === "jev") wanted.push(optional(query("/api/usage", { jev: 1, comboId: id, range: app.range }), null));
  const [usage, log, jev] = await Promise.all(wanted);
  app.history[id] = { usage, log: log.logs, jev: jev || null };
  changed();
}

/** An answer that may be missing: a proxy without a ledger has no statistics. */
async function optional(path, otherwise) {
  try {
    return await get(path);
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 503 || error.status === 500)) return otherwise;
    throw error;
  }
}

const HOOKS = { afterEvents: () => undefined };

/** What the shown page wants to be loaded again after something happened. */
export function onEvents(hook) {
  HOOKS.afterEvents = hook;
}

function connect() {
  stop?.();
  stop = listen("/api/events", take, (status) => {
    if (status === "unauthorized") return signOut("The token is not accepted any more.");
    // Without the events nobody told what changed meanwhile.
    if (app.link === "down") stale.configuration = true;
    app.link = status;
    clearInterval(polling);
    if (status === "down") polling = setInterval(refresh, POLL_MS);
    else refresh();
    return changed();
  });
}

let refreshing = null;
let stale = { configuration: false };

function take(event) {
  app.feed = [event, ...app.feed].slice(0, FEED_MAX);
  if (event.kind === "reload") stale.configuration = true;
  changed();
  refreshing ??= setTimeout(refresh, REFRESH_MS);
}

async function refresh() {
  refreshing = null;
  const whole = stale.configuration;
  stale = { configuration: false };
  try {
    if (whole) await loadConfiguration();
    await loadLive();
    await HOOKS.afterEvents(whole);
  } catch (error) {
    if (error.status === 401) signOut("The token is not accepted any more.");
    else app.link = "down";
  }
  changed();
}

/** A hidden page holds no connection; one that is shown again is fresh. */
export function followVisibility() {
  document.addEventListener("visibilitychange", () => {
    if (app.needsToken) return;
    if (document.hidden) {
      stop?.();
      clearInterval(polling);
    } else {
      stale.configuration = true;
      connect();
    }
  });
}

// A combo while it is edited: its values, the way back, what differs from the stored one, what the server says of it.

import { call } from "./api.js";
import { app, changed } from "./state.js";

/** Every field with its default, in the order of the configuration reference. */
export const DEFAULTS = {
  strategy: "failover", stickyLimit: 1, cooldownMs: null, waitForCooldownMs: 0, cooldownWaitPolicy: null,
  defaultEffort: null, defaultEffortMode: "fallback", reasoningEffortMode: "strict", imageInput: "auto",
  alias: null, nativeAlias: false, displayName: null, decisionProvider: null, decisionModel: null,
  decisionTimeoutMs: null, contextOverflow: "stop", affinity: "none", firstOutputTimeoutMs: null, hedgeAfterMs: null,
};
const DECISION = ["decisionProvider", "decisionModel", "decisionTimeoutMs"];
const CHECK_MS = 350;
const HISTORY_MAX = 100;
let keys = 0;

export function newTarget(values = {}) {
  return { key: ++keys, provider: "", model: "", weight: 1, lastResort: false, reasoningEfforts: null, modelProfile: null, ...values };
}

/** The draft of a stored combo (a row of the list), or of a new one (`row` null, with first values). */
export function openDraft(name, row, values = {}) {
  const source = { id: row?.id ?? "", ...DEFAULTS, ...values, ...(row || {}) };
  const targets = (source.targets || []).map((target) => newTarget(target));
  delete source.model;
  const value = { ...source, targets: targets.length ? targets : [newTarget()] };
  app.drafts[name] = { name, row, originId: row?.id ?? null, base: structuredClone(value), value, past: [], future: [], problems: [], plan: null, touched: false, saving: false };
  check(app.drafts[name]);
  return app.drafts[name];
}

/** Change the draft. Changes with the same `group` in a row (typing) are one step of undo. */
export function edit(draft, change, group = null) {
  const before = structuredClone(draft.value);
  change(draft.value);
  if (same(before, draft.value)) return;
  if (!group || draft.group !== group) draft.past = [...draft.past.slice(1 - HISTORY_MAX), before];
  Object.assign(draft, { future: [], group, touched: true });
  settle(draft);
}

export const setField = (draft, name, value) => edit(draft, (made) => { made[name] = value; }, `field:${name}`);

export function undo(draft) {
  if (draft.past.length) step(draft, "past", "future");
}

export function redo(draft) {
  if (draft.future.length) step(draft, "future", "past");
}

function step(draft, from, to) {
  const wanted = draft[from].at(-1);
  Object.assign(draft, { [from]: draft[from].slice(0, -1), [to]: [...draft[to], draft.value], value: wanted, group: null });
  settle(draft);
}

function settle(draft) {
  clearTimeout(draft.timer);
  draft.timer = setTimeout(() => check(draft), CHECK_MS);
  changed();
}

const same = (left, right) => JSON.stringify(plain(left)) === JSON.stringify(plain(right));

export const isDirty = (draft) => draft.originId === null || !same(draft.base, draft.value);

/** The definition without what only the editor needs. */
function plain(value) {
  return { ...value, targets: value.targets.map(({ key, ...target }) => target) };
}

/** The definition as it is sent: every field, so that nothing is kept by silence. */
export function definition(value) {
  const { id, ...made } = plain(value);
  if (made.strategy !== "jev") DECISION.forEach((name) => delete made[name]);
  if (made.cooldownMs === null) delete made.cooldownMs;
  return made;
}

function putBody(draft, dryRun) {
  const { id, cooldownMs } = draft.value;
  const body = { id, combo: definition(draft.value), dryRun };
  if (draft.originId !== null && draft.originId !== id) body.renameFrom = draft.originId;
  if (cooldownMs === null) body.clear = ["cooldownMs"];
  return body;
}

/** Ask the server what it would say to this draft, and what the next request would do with it. */
export async function check(draft) {
  const asked = draft.value;
  if (!asked.id) return found(draft, asked, [{ path: "id", message: "is required" }], null);
  try {
    const stored = await call("PUT", "/api/combos", putBody(draft, true));
    const plan = await call("POST", "/api/combos/dry-run", { id: asked.id, combo: definition(asked) }).catch(() => null);
    return found(draft, asked, [], plan, stored.combo);
  } catch (error) {
    if (isNoVerdict(error)) return null;
    return found(draft, asked, problemsOf(error, asked.id), null);
  }
}

function found(draft, asked, problems, plan, stored = null) {
  if (draft.value === asked || same(draft.value, asked)) Object.assign(draft, { problems, plan, stored });
  changed();
}

/** Nobody has judged the draft: the proxy is away, or it did not accept the token. */
const isNoVerdict = (error) => error.status === 0 || error.status === 401;

/** Store it. Answers the id, or null when it was refused. Throws what says nothing about the draft. */
export async function save(draft) {
  draft.saving = true;
  draft.touched = true;
  changed();
  try {
    return (await call("PUT", "/api/combos", putBody(draft, false))).id;
  } catch (error) {
    if (isNoVerdict(error)) throw error;
    draft.problems = problemsOf(error, draft.value.id);
    return null;
  } finally {
    draft.saving = false;
    changed();
  }
}

function problemsOf(error, id) {
  const given = error.problems?.length ? error.problems : [{ path: "", message: error.message }];
  return given.map(({ path, message }) => ({ path: shortPath(path, id), message }));
}

/** `combos.main.targets[0].weight` → `targets[0].weight`; the combo itself, and its old name, → `id`; other places stay as they are. */
export function shortPath(path, id) {
  if (path === "renameFrom") return "id";
  for (const start of [`combos.${id}`, `combos[${JSON.stringify(id)}]`]) {
    if (path === start) return "id";
    if (path.startsWith(`${start}.`)) return path.slice(start.length + 1);
  }
  return path;
}

export const problemAt = (draft, path) => draft.problems.filter((problem) => problem.path === path).map((problem) => problem.message);

/** The changed fields as `{name, before, after}`, ready to be read. */
export function differences(draft) {
  const [before, after] = [plain(draft.base), plain(draft.value)];
  const names = Object.keys({ ...before, ...after }).filter((name) => name !== "targets");
  const rows = names.filter((name) => !same2(before[name], after[name])).map((name) => ({ name, before: shown(before[name]), after: shown(after[name]) }));
  return [...rows, ...targetDifferences(before.targets, after.targets)];
}

const same2 = (left, right) => JSON.stringify(left ?? null) === JSON.stringify(right ?? null);
const shown = (value) => (value === null || value === undefined || value === "" ? "–" : String(value));

function targetDifferences(before, after) {
  const text = (target) => `${target.provider}/${target.model}${details(target)}`;
  if (same2(before, after)) return [];
  return [{ name: "targets", before: before.map(text).join("\n"), after: after.map(text).join("\n") }];
}

function details(target) {
  const parts = [target.weight !== 1 && `weight ${target.weight}`, target.lastResort && "last resort"];
  parts.push(target.reasoningEfforts && target.reasoningEfforts.join(" "), target.modelProfile && "with a note");
  const kept = parts.filter(Boolean);
  return kept.length ? ` (${kept.join(", ")})` : "";
}

// What people do to combos: save, remove, bring back, make new ones, end cooldowns.

import { call, query } from "./api.js";
import { definition, isDirty, openDraft, save } from "./draft.js";
import { go } from "./router.js";
import { app, attempt, changed, comboOf, dropUndo, loadConfiguration, loadLive, loadPlan, toast } from "./state.js";
import { h } from "./vdom.js";

export const NEW = "new combo";

/** The draft for an address; made on the first visit, and anew when nothing was typed and the stored combo changed. */
export function draftFor(id) {
  const draft = app.drafts[id];
  if (draft && (isDirty(draft) || !isOutdated(draft))) return draft;
  return openDraft(id, id === NEW ? null : comboOf(id));
}

/** Whether the stored combo is another one than the draft began with. */
export function isOutdated(draft) {
  const row = draft.originId === null ? null : comboOf(draft.originId);
  return Boolean(row) && JSON.stringify(row) !== JSON.stringify(draft.row);
}

/** Forget what was typed and begin with the combo as it is stored now. */
export function takeStored(draft) {
  openDraft(draft.name, comboOf(draft.originId));
  changed();
}

export async function saveDraft(draft) {
  const before = draft.originId === null ? null : comboOf(draft.originId);
  let saved = null;
  if (!(await attempt(async () => { saved = await save(draft); }))) return;
  if (saved === null) {
    document.querySelector("[aria-invalid=true], .summary.bad")?.focus();
    return;
  }
  delete app.drafts[draft.name];
  await attempt(reloadAll);
  go("combos", saved, "edit");
  if (before && before.id !== saved) dropUndo(before.id);
  toast(draft.originId === null ? `${saved} is created.` : `${saved} is saved.`, "good", before && { label: "Undo", run: () => putBack(before, saved), about: saved });
  changed();
}

/** Store a row of the list as it was, whatever it is called now. */
async function putBack(row, current = null) {
  const { model, ...combo } = row;
  const body = { id: row.id, combo: definition({ ...definitionSource(combo), id: row.id }), clear: row.cooldownMs === undefined ? ["cooldownMs"] : [] };
  if (current && current !== row.id) body.renameFrom = current;
  await attempt(async () => {
    await call("PUT", "/api/combos", body);
    delete app.drafts[row.id];
    if (current) delete app.drafts[current];
    await reloadAll();
    toast(`${row.id} is as it was.`, "good");
    go("combos", row.id, "edit");
  });
}

function definitionSource(row) {
  const opened = openDraft(" restore", { ...row });
  delete app.drafts[" restore"];
  clearTimeout(opened.timer);
  return opened.value;
}

async function reloadAll() {
  await loadConfiguration();
  await loadLive();
}

export function discardDraft(draft) {
  const fresh = () => {
    delete app.drafts[draft.name];
    if (draft.originId === null) go("combos");
    changed();
  };
  if (!isDirty(draft) || !draft.touched) return fresh();
  app.dialog = {
    title: "Discard the changes?",
    body: () => h("p", {}, "What you changed here and did not save is lost."),
    actions: [{ label: "Discard", kind: "danger", run: fresh }],
  };
  return changed();
}

export function askRemove(combo) {
  app.dialog = {
    title: `Remove ${combo.id}?`,
    body: () => h("p", {}, "Requests for ", h("code", {}, combo.model), " will be answered with 404. You can undo this right after."),
    actions: [{ label: "Remove", kind: "danger", run: () => remove(combo) }],
  };
  changed();
}

function remove(combo) {
  return attempt(async () => {
    await call("DELETE", query("/api/combos", { id: combo.id }));
    delete app.drafts[combo.id];
    go("combos");
    await reloadAll();
    toast(`${combo.id} is removed.`, "good", { label: "Undo", run: () => putBack(combo) });
  });
}

export function newCombo(values = {}) {
  openDraft(NEW, null, values);
  go("combos", NEW, "edit");
}

/** `jev-auto` as the server proposes it; one that exists already is shown instead. */
export function newJevCombo(provider) {
  return attempt(async () => {
    const template = await call("GET", query("/api/combos/jev-template", { provider }));
    if (template.existing) {
      toast(`${template.existing} has this id or alias already.`);
      return go("combos", template.existing, "edit");
    }
    newCombo({ id: template.id, ...template.combo });
    if (template.missing.length) toast(`Not configured here, so left out: ${template.missing.join(", ")}`);
    return undefined;
  });
}

export function duplicate(row) {
  const { model, alias, nativeAlias, displayName, ...rest } = row;
  let id = `${row.id}-copy`;
  while (comboOf(id)) id += "-copy";
  newCombo({ ...structuredClone(rest), id });
}

export function clearCooldowns(id, target) {
  return attempt(async () => {
    const { cleared } = await call("POST", query("/api/combos/cooldowns/clear", { id, target }));
    await loadLive();
    if (id) await loadPlan(id);
    toast(cleared === 1 ? "The cooldown is ended." : `${cleared} cooldowns are ended.`, "good");
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${text}`, "good");
  } catch {
    toast(`Copying is not allowed here: ${text}`);
  }
}

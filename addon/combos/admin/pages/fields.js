// Labelled inputs. Every one shows its hint and the problems the server has with it, and names both to screen readers.

import { h } from "./vdom.js";

let width = 0;
const ids = new Map();

/** A stable id for a name, fit for `id` attributes. */
export function idOf(name) {
  if (!ids.has(name)) ids.set(name, `f${++width}`);
  return ids.get(name);
}

function described(id, hint, problems) {
  const ids = [hint && `${id}-hint`, problems.length && `${id}-bad`].filter(Boolean);
  return { "aria-describedby": ids.join(" ") || null, "aria-invalid": problems.length ? "true" : null };
}

/** `options`: label, hint, problems, kind of input. `control(id, attributes)` makes the input. */
export function field({ name, label, hint, problems = [], wide, control, className = "" }) {
  const id = idOf(name);
  return h("div", { key: `field-${name}`, class: `field ${wide ? "wide" : ""} ${problems.length ? "bad" : ""} ${className}` },
    h("label", { for: id }, label),
    control(id, described(id, hint, problems)),
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
    problemList(id, problems));
}

export function problemList(id, problems) {
  return problems.length > 0 && h("p", { class: "problem", id: `${id}-bad`, role: "alert" }, problems.map(sentence).join(" "));
}

/** A server's message as a sentence: `must be an integer` → `Must be an integer.` */
export function sentence(text) {
  const made = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(made) ? made : `${made}.`;
}

export function textField({ value, onchange, placeholder, list, mono, type = "text", autocomplete = "off", ...rest }) {
  return field({
    ...rest,
    control: (id, attributes) => h("input", {
      id, type, value: value ?? "", placeholder, list, autocomplete, spellcheck: "false", autocapitalize: "off",
      class: mono ? "mono" : "", oninput: (event) => onchange(event.target.value), ...attributes,
    }),
  });
}

/** A number as it was typed: whole numbers become numbers, nothing becomes null, the rest is left for the server to name. */
export function numberField({ value, onchange, placeholder, unit, ...rest }) {
  return field({
    ...rest,
    control: (id, attributes) => h("span", { class: "unit" },
      h("input", {
        id, inputmode: "numeric", value: value ?? "", placeholder, autocomplete: "off", class: "num",
        oninput: (event) => onchange(parsed(event.target.value)), ...attributes,
      }),
      unit && h("span", { "aria-hidden": "true" }, unit)),
  });
}

export function parsed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  return /^-?\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** `options` are `[value, label, disabled?]`; the value null is written as an empty text. */
export function selectField({ value, onchange, options, ...rest }) {
  return field({
    ...rest,
    control: (id, attributes) => h("select", { id, onchange: (event) => onchange(event.target.value || null), ...attributes },
      options.map(([option, label, disabled]) => h("option", {
        key: String(option), value: option ?? "", selected: (option ?? "") === (value ?? ""), disabled: Boolean(disabled),
      }, label))),
  });
}

export function checkField({ name, label, hint, problems = [], checked, onchange, disabled }) {
  const id = idOf(name);
  return h("div", { key: `field-${name}`, class: `field check ${problems.length ? "bad" : ""}` },
    h("input", { id, type: "checkbox", checked, disabled, onchange: (event) => onchange(event.target.checked), ...described(id, hint, problems) }),
    h("label", { for: id }, label),
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
    problemList(id, problems));
}

/** A choice among a few: `options` are `[value, label, hint]`. */
export function choiceField({ name, legend, value, onchange, options, problems = [], className = "" }) {
  const id = idOf(name);
  return h("fieldset", { key: `field-${name}`, class: `choice ${className}`, "aria-describedby": problems.length ? `${id}-bad` : null },
    h("legend", {}, legend),
    h("div", { class: "options" }, options.map(([option, label, hint]) => h("label", { key: option, class: option === value ? "on" : "" },
      h("input", { type: "radio", name: id, value: option, checked: option === value, onchange: () => onchange(option) }),
      h("span", { class: "name" }, label),
      hint && h("span", { class: "hint" }, hint)))),
    problemList(id, problems));
}

export function button(text, onclick, { kind = "", disabled = false, label, title, icon, id, key } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, disabled, "aria-label": label, title, id, key }, icon, text && h("span", {}, text));
}

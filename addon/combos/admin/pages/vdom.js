// Draws a tree of plain objects and changes the document only where it differs, so that focus and selection survive.

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "open", "indeterminate"]);
// Nodes whose `onmount` is due when the drawing is in the document.
const mounted = [];
const SVG = "http://www.w3.org/2000/svg";

/** A node: `h("button", {class: "x", onclick: f, key: 1}, "text", …)`. Null, false and true children are dropped. */
export function h(tag, props, ...children) {
  return { tag, props: props || {}, children: flat(children), key: props?.key, dom: null };
}

function flat(children) {
  const made = [];
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === true) continue;
    made.push(typeof child === "object" ? child : { tag: null, text: String(child), children: [], dom: null });
  }
  return made;
}

/** Makes the children of `root` look like `next`. The focused element keeps the focus, wherever it moved. */
export function render(root, next) {
  const focused = document.activeElement;
  const made = flat([next]);
  patchChildren(root, root.drawn || [], made, false);
  root.drawn = made;
  for (const node of mounted.splice(0)) node.props.onmount(node.dom);
  if (focused && focused !== document.activeElement && focused.isConnected && focused !== document.body) {
    focused.focus({ preventScroll: true });
  }
}

function patchChildren(parent, before, next, svg) {
  const free = new Set(before);
  const byKey = new Map(before.filter((node) => node.key !== undefined).map((node) => [node.key, node]));
  const wanted = next.map((node) => {
    const found = node.key === undefined ? firstLike(free, node) : byKey.get(node.key);
    const old = found && free.has(found) && found.tag === node.tag ? found : null;
    free.delete(old);
    return [node, old];
  });
  for (const node of free) node.dom.remove();
  let cursor = parent.firstChild;
  for (const [node, old] of wanted) {
    if (old) patch(node, old, svg);
    else create(node, svg);
    if (node.dom === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node.dom, cursor);
    if (!old && node.props?.onmount) mounted.push(node);
  }
}

function firstLike(free, node) {
  for (const candidate of free) {
    if (candidate.key === undefined && candidate.tag === node.tag) return candidate;
  }
  return null;
}

function create(node, svg) {
  if (node.tag === null) {
    node.dom = document.createTextNode(node.text);
    return;
  }
  const inSvg = svg || node.tag === "svg";
  node.dom = inSvg ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  node.dom.handlers = {};
  patchChildren(node.dom, [], node.children, inSvg);
  for (const [name, value] of Object.entries(node.props)) setProp(node.dom, name, undefined, value);
}

function patch(node, old, svg) {
  node.dom = old.dom;
  if (node.tag === null) {
    if (node.text !== old.text) node.dom.data = node.text;
    return;
  }
  patchChildren(node.dom, old.children, node.children, svg || node.tag === "svg");
  for (const name of Object.keys(old.props)) if (!(name in node.props)) setProp(node.dom, name, old.props[name], undefined);
  for (const [name, value] of Object.entries(node.props)) setProp(node.dom, name, old.props[name], value);
}

function setProp(dom, name, before, value) {
  if (name === "key" || name === "onmount") return;
  if (name.startsWith("on")) return setHandler(dom, name.slice(2), value);
  if (name === "style") return setStyle(dom, before || {}, value || {});
  if (PROPERTIES.has(name)) {
    const wanted = value ?? (name === "value" ? "" : false);
    if (dom[name] !== wanted) dom[name] = wanted;
    return;
  }
  if (value === before) return;
  if (value === undefined || value === null || value === false) dom.removeAttribute(name);
  else dom.setAttribute(name, value === true ? "" : value);
}

function setHandler(dom, type, handler) {
  if (!(type in dom.handlers)) dom.addEventListener(type, (event) => dom.handlers[type]?.(event));
  dom.handlers[type] = handler;
}

function setStyle(dom, before, value) {
  for (const name of Object.keys(before)) if (!(name in value)) dom.style.removeProperty(name);
  for (const [name, text] of Object.entries(value)) dom.style.setProperty(name, text);
}

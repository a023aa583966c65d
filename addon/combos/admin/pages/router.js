// Addresses inside the page: `#/combos/main/edit`, `#/requests`. Every screen has one, so that back and reload work.

const PAGES = ["combos", "requests", "statistics", "providers"];

/** `{page, id, tab}` of the address as it is. */
export function route() {
  const [page, id, tab] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { page: PAGES.includes(page) ? page : "combos", id: id || null, tab: tab || "live" };
}

/** A part of an address that somebody has cut or mistyped is taken as it stands. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

export function go(...parts) {
  location.hash = to(...parts);
}

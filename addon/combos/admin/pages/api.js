// Talks to the management API of this origin. The token stays in this tab and goes out only as a header.

import { decoded } from "./router.js";

const KEY = "combos-admin-token";

/** A refusal: `status` is 0 when nobody answered; `problems` are `{path, message}`. */
export class ApiError extends Error {
  constructor(status, message, code = "", problems = [], extra = {}) {
    super(message);
    Object.assign(this, { status, code, problems, extra });
  }
}

/** Takes a token from `#token=…` out of the address, so that it is neither shown nor kept in the history. */
export function adoptTokenFromAddress() {
  const found = /^#token=([^&]+)$/.exec(location.hash);
  if (!found) return;
  setToken(decoded(found[1]));
  history.replaceState(null, "", `${location.pathname}#/combos`);
}

export const token = () => sessionStorage.getItem(KEY) || "";

export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value.trim());
  else sessionStorage.removeItem(KEY);
}

export function headers(more = {}) {
  return { Authorization: `Bearer ${token()}`, ...more };
}

/** The JSON of an answer. Throws `ApiError`. */
export async function call(method, path, body) {
  const options = { method, headers: headers(), cache: "no-store" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  // Headers carry no such characters; the browser would refuse to send what no server has given out.
  if (!/^[\x20-\x7e]*$/.test(token())) throw new ApiError(401, "The token has characters that no token has.");
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new ApiError(0, "The proxy does not answer. Is it still running?");
  }
  const document = await answer.json().catch(() => ({}));
  if (answer.ok) return document;
  const { error, code, problems, ...extra } = document;
  throw new ApiError(answer.status, error || `status ${answer.status}`, code, problems || [], extra);
}

export const get = (path) => call("GET", path);

/** A path with a query; parameters without a value are left out. */
export function query(path, parameters) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(kept).toString();
  return text ? `${path}?${text}` : path;
}

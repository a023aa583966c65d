// Numbers, durations and instants as people read them.

/** `850 ms`, `7.2 s`, `42 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10000) return `${trim((ms / 1000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return join(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 172800) return join(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  return join(Math.floor(seconds / 86400), "d", Math.floor((seconds % 86400) / 3600), "h");
}

function join(whole, unit, rest, small) {
  return rest ? `${whole} ${unit} ${rest} ${small}` : `${whole} ${unit}`;
}

const trim = (text) => text.replace(/\.0$/, "");

/** A countdown: `0:42`, `10:00`, `1:02:03`. Never negative. */
export function clock(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const pair = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  return hours ? `${hours}:${pair(minutes)}:${pair(seconds % 60)}` : `${minutes}:${pair(seconds % 60)}`;
}

/** `just now`, `12 s ago`, `3 min ago`, `5 h ago`, then the date. */
export function ago(at, now) {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 3) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(at).toLocaleDateString();
}

export const time = (at) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function instant(at) {
  const made = new Date(at);
  return made.toDateString() === new Date().toDateString()
    ? made.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : made.toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** `1,234`, `12.3k`, `4.5M`. */
export function count(value) {
  if (value === null || value === undefined) return "–";
  if (value < 10000) return value.toLocaleString("en");
  if (value < 1e6) return `${trim((value / 1e3).toFixed(1))}k`;
  return value < 1e9 ? `${trim((value / 1e6).toFixed(1))}M` : `${trim((value / 1e9).toFixed(1))}G`;
}

/** `66.7 %`; whole numbers without the digit. */
export function percent(share) {
  return share === null || share === undefined || Number.isNaN(share) ? "–" : `${trim((share * 100).toFixed(1))} %`;
}

export function usd(value) {
  if (value === null || value === undefined) return "–";
  return value < 0.01 && value > 0 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
}

export const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

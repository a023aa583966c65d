// Server-sent events over fetch, because EventSource cannot send the token as a header. Comes back after a break.

import { headers } from "./api.js";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 10000;

/** Calls `onEvent({kind, at, …})` and `onStatus("live" | "down" | "unauthorized")`; returns what stops it. */
export function listen(path, onEvent, onStatus) {
  const abort = new AbortController();
  follow(path, onEvent, onStatus, abort.signal);
  return () => abort.abort();
}

async function follow(path, onEvent, onStatus, signal) {
  let last = null;
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const answer = await fetch(path, { headers: headers(last ? { "Last-Event-ID": last } : {}), signal });
      if (answer.status === 401) return onStatus("unauthorized");
      if (answer.ok) {
        onStatus("live");
        pause = FIRST_PAUSE_MS;
        await read(answer.body, (event) => {
          last = String(event.id);
          onEvent(event);
        });
      }
    } catch {
      if (signal.aborted) return undefined;
    }
    onStatus("down");
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  return undefined;
}

async function read(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (data.length) onEvent(JSON.parse(data.join("\n")));
    }
  }
}

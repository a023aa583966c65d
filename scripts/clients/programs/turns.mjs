// What the Node programs share: turns are asked for on standard input, one line of JSON each, and told on standard output.
import { execFileSync } from "node:child_process";
import { createInterface } from "node:readline";

export const DESCRIPTION = "Runs a command and gives its output.";
export const SCHEMA = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
export const SILENT = "SILENT";

export const shell = (command) => execFileSync("sh", ["-c", command], { encoding: "utf8" });

export async function take(turn) {
  for await (const line of createInterface({ input: process.stdin })) {
    const started = performance.now();
    const told = { text: "", failed: "" };
    try {
      told.text = await turn(JSON.parse(line));
    } catch (error) {
      told.failed = `${error.constructor.name}: ${error.message}`.slice(0, 600);
    }
    console.log(JSON.stringify({ ...told, seconds: (performance.now() - started) / 1000 }));
  }
}

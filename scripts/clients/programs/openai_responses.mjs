// Turns with the OpenAI library for Node: the Responses API.
import OpenAI from "openai";
import { DESCRIPTION, SCHEMA, SILENT, shell, take } from "./turns.mjs";

const client = new OpenAI();
const tools = [{ type: "function", name: "shell", description: DESCRIPTION, parameters: SCHEMA, strict: false }];

async function ask({ model, stream }, input) {
  if (!stream) return client.responses.create({ model, input, tools });
  let last;
  for await (const event of await client.responses.create({ model, input, tools, stream })) last = event;
  if (["response.completed", "response.incomplete"].includes(last?.type)) return last.response;
  if (["response.failed", "error"].includes(last?.type)) throw new Error(`the stream ended with ${last.type}`);
  throw new Error(SILENT);
}

await take(async (asked) => {
  const said = [{ role: "user", content: "run it" }];
  for (;;) {
    const { output } = await ask(asked, said);
    const calls = output.filter((item) => item.type === "function_call");
    if (!calls.length) return output.flatMap((item) => item.content ?? []).map((part) => part.text).join("");
    said.push(...output);
    for (const call of calls) {
      const result = shell(JSON.parse(call.arguments).command);
      said.push({ type: "function_call_output", call_id: call.call_id, output: result });
    }
  }
});

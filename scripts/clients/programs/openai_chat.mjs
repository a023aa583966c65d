// Turns with the OpenAI library for Node: the Chat Completions API.
import OpenAI from "openai";
import { DESCRIPTION, SCHEMA, SILENT, shell, take } from "./turns.mjs";

const client = new OpenAI();
const tools = [{ type: "function", function: { name: "shell", description: DESCRIPTION, parameters: SCHEMA } }];

async function ask({ model, stream }, messages) {
  if (!stream) return (await client.chat.completions.create({ model, messages, tools })).choices[0].message;
  const running = client.chat.completions.stream({ model, messages, tools });
  const completion = await running.finalChatCompletion();
  if (!completion.choices[0].finish_reason) throw new Error(SILENT);
  return completion.choices[0].message;
}

await take(async (asked) => {
  const said = [{ role: "user", content: "run it" }];
  for (;;) {
    const message = await ask(asked, said);
    if (!message.tool_calls?.length) return message.content;
    said.push(message);
    for (const call of message.tool_calls) {
      const content = shell(JSON.parse(call.function.arguments).command);
      said.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
});

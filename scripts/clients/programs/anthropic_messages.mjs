// Turns with the Anthropic library for Node.
import Anthropic from "@anthropic-ai/sdk";
import { DESCRIPTION, SCHEMA, SILENT, shell, take } from "./turns.mjs";

const client = new Anthropic();
const tools = [{ name: "shell", description: DESCRIPTION, input_schema: SCHEMA }];

async function ask({ model, stream }, messages) {
  const asked = { model, max_tokens: 1000, messages, tools };
  const message = stream ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
  if (!message.stop_reason) throw new Error(SILENT);
  return message;
}

await take(async (asked) => {
  const said = [{ role: "user", content: "run it" }];
  for (;;) {
    const { content } = await ask(asked, said);
    const calls = content.filter((block) => block.type === "tool_use");
    if (!calls.length) return content.map((block) => block.text ?? "").join("");
    said.push({ role: "assistant", content });
    const result = ({ id, input }) => ({ type: "tool_result", tool_use_id: id, content: shell(input.command) });
    said.push({ role: "user", content: calls.map(result) });
  }
});

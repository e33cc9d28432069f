import { assertEquals } from "@std/assert";
import { readPrompt } from "../../../lib/protocols/gemini/read_prompt.ts";

Deno.test("readPrompt() joins adjacent contents of the model: chats of @google/genai have one for each chunk", () => {
  const call = (zone: string) => ({ role: "model", parts: [{ functionCall: { name: "clock", args: { zone } } }] });
  const result = (text: string) => ({ functionResponse: { name: "clock", response: { result: text } } });
  const { messages } = readPrompt({
    model: "acme/one",
    contents: [
      { role: "user", parts: [{ text: "Both" }] },
      { role: "model", parts: [{ text: "I will " }] },
      { role: "model", parts: [{ text: "look." }] },
      call("Rome"),
      call("Bern"),
      { role: "model", parts: [] },
      { role: "user", parts: [result("Noon"), result("Night")] },
    ],
  });
  assertEquals(messages.map(({ role, blocks }) => [role, blocks.map(({ type }) => type)]), [
    ["user", ["text"]],
    ["assistant", ["text", "tool_call", "tool_call"]],
    ["user", ["tool_result", "tool_result"]],
  ]);
  assertEquals(messages[1]?.blocks[0], { type: "text", text: "I will look." });
});

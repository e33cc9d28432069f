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

Deno.test("readPrompt() reads no reasoning from a placeholder, in plain text or in the base64 of Google's Python SDK", () => {
  const placeholders = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];
  for (const thoughtSignature of placeholders.flatMap((text) => [text, btoa(text)])) {
    const part = { functionCall: { name: "clock", args: {} }, thoughtSignature };
    const { messages } = readPrompt({ model: "acme/one", contents: [{ role: "model", parts: [part] }] });
    assertEquals(messages[0]?.blocks.map(({ type }) => type), ["tool_call"], thoughtSignature);
  }
});

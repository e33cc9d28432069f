import { assertEquals } from "@std/assert";
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";

Deno.test("UnsupportedParameters names each parameter once, in order", () => {
  const dropped = new UnsupportedParameters();
  assertEquals(dropped.names, []);
  for (const name of ["top_k", "seed", "top_k"]) dropped.add(name);
  assertEquals(dropped.names, ["top_k", "seed"]);
});

Deno.test("UnsupportedParameters uses the names of the client's body", () => {
  const cases: [Protocol, JsonObject, name: string, own: string][] = [
    ["chat", { max_tokens: 5 }, "max_completion_tokens", "max_tokens"],
    ["chat", { max_tokens: 5, max_completion_tokens: 5 }, "max_completion_tokens", "max_completion_tokens"],
    ["chat", { max_tokens: 5, max_completion_tokens: null }, "max_completion_tokens", "max_tokens"],
    ["chat", { reasoning: { effort: "high" } }, "reasoning_effort", "reasoning.effort"],
    ["chat", { reasoning: { enabled: true } }, "reasoning_effort", "reasoning"],
    ["chat", { reasoning_effort: "none" }, "reasoning", "reasoning_effort"],
    ["chat", { messages: [{ role: "assistant", reasoning: "Hm." }] }, "reasoning_content", "messages.reasoning"],
    ["chat", { messages: [{ reasoning_content: "Hm." }, { reasoning: "" }] }, "reasoning_content", "reasoning_content"],
    ["chat", { functions: [] }, "tools", "functions"],
    ["chat", { safety_identifier: "u" }, "user", "safety_identifier"],
    ["chat", { user: "u" }, "safety_identifier", "user"],
    ["responses", { max_output_tokens: 5 }, "max_completion_tokens", "max_output_tokens"],
    ["responses", { safety_identifier: "u" }, "user", "safety_identifier"],
    ["responses", { text: { verbosity: "low" } }, "verbosity", "text.verbosity"],
    ["responses", { verbosity: "low", text: { verbosity: "low" } }, "verbosity", "verbosity"],
    ["responses", { include: [] }, "logprobs", "include"],
    ["messages", { max_tokens: 5 }, "max_completion_tokens", "max_tokens"],
    ["messages", { stop_sequences: ["x"] }, "stop", "stop_sequences"],
    ["messages", { metadata: { user_id: "u" } }, "user", "metadata.user_id"],
    ["messages", { thinking: { budget_tokens: 2_000 } }, "output_config.effort", "thinking.budget_tokens"],
    ["messages", {}, "top_k", "top_k"],
  ];
  for (const [protocol, request, name, own] of cases) {
    const dropped = new UnsupportedParameters({ prompt: { protocol }, request });
    dropped.add(name);
    dropped.add(own);
    assertEquals(dropped.names, [own], JSON.stringify(request));
  }
});

Deno.test("UnsupportedParameters searches the body once for each name", () => {
  let reads = 0;
  const messages = [{ role: "assistant", content: "x" }];
  const request = {
    get messages() {
      reads++;
      return messages;
    },
  };
  const dropped = new UnsupportedParameters({ prompt: { protocol: "chat" }, request });
  for (let count = 0; count < 100; count++) {
    dropped.add("reasoning_content");
    dropped.add(`messages.unknown_${count}`);
  }
  assertEquals(dropped.names.length, 101);
  assertEquals(reads <= 4, true, `${reads} searches`);
});

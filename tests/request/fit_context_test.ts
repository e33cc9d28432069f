import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { Prompt } from "../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import { GatewayError } from "../../lib/errors.ts";
import { fitContext } from "../../lib/request/fit_context.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import { messages } from "../../lib/protocols/messages/mod.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";
import { model, startGateway } from "../support/gateway.ts";

function modelOf(context_length: number): Model {
  return modelSchema.parse({
    id: "acme/one",
    created: 1,
    context_length,
    pricing: { prompt: "0", completion: "0" },
    targets: [{ upstream: "embedded", model: "echo" }],
  });
}

/** A prompt with this number of turns. */
function promptOf(turns: number, truncation?: "auto"): Prompt {
  const input = Array.from({ length: turns }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: "one two three four five six seven eight nine ten",
  }));
  return responses.readPrompt({ model: "acme/one", input, ...(truncation !== undefined && { truncation }) });
}

Deno.test("fitContext() leaves the check to an upstream that makes it itself", async () => {
  const prompt = promptOf(9);
  const fitted = await fitContext(prompt, { model: modelOf(5), codec: responses, checkedUpstream: true });
  assertEquals(fitted.prompt === prompt, true);
  const counts = await Promise.all([fitted.countInput(), fitted.countInput()]);
  // Messages that the upstream accepted fit into its context.
  assertEquals(counts, [5, 5]);
  const wide = await fitContext(prompt, { model: modelOf(1_000), codec: responses, checkedUpstream: true });
  const count = await wide.countInput();
  assertEquals(count > 90 && count < 1_000, true, `${count}`);
});

Deno.test("fitContext() rejects a too long request in the protocol's own words", async () => {
  const error = await assertRejects(
    async () => await fitContext(promptOf(9), { model: modelOf(50), codec: chat, checkedUpstream: false }),
    GatewayError,
  );
  assertEquals([error.kind, error.code], ["invalid", "context_length_exceeded"]);
});

Deno.test("fitContext() drops the oldest turns if the client asks for it, with and without a checking upstream", async () => {
  for (const checkedUpstream of [true, false]) {
    const prompt = promptOf(9, "auto");
    const fitted = await fitContext(prompt, { model: modelOf(60), codec: responses, checkedUpstream });
    assertEquals(fitted.prompt.messages.length < 9, true);
    assertEquals(fitted.prompt.messages.at(-1), prompt.messages.at(-1));
    assertEquals(await fitted.countInput() <= 60, true);
    const roomy = await fitContext(prompt, { model: modelOf(10_000), codec: responses, checkedUpstream });
    assertEquals(roomy.prompt === prompt, true);
  }
});

Deno.test("fitContext() rejects a last turn that is too long by itself", async () => {
  await assertRejects(
    async () => await fitContext(promptOf(1, "auto"), { model: modelOf(3), codec: responses, checkedUpstream: true }),
    GatewayError,
  );
});

Deno.test("fitContext() counts the requested output towards the context", async () => {
  const prompt = promptOf(1);
  const input = await (await fitContext(prompt, { model: modelOf(1_000), codec: chat, checkedUpstream: false }))
    .countInput();
  const fit = (codec: typeof chat, maxTokens: number, given = prompt) =>
    fitContext(given, { model: modelOf(1_000), codec, checkedUpstream: false, maxTokens });
  const most = 1_000 - input;
  for (const codec of [chat, responses, messages]) {
    assertEquals((await fit(codec, most)).prompt === prompt, true);
    const error = await assertRejects(async () => await fit(codec, most + 1), GatewayError);
    assertEquals([error.kind, error.code], ["invalid", "context_length_exceeded"]);
    assertMatch(error.message, new RegExp(`\\b${input}\\b.*\\b${most + 1}\\b.*`));
  }
  const shortened = await fit(responses, 940, promptOf(9, "auto"));
  assertEquals(shortened.prompt.messages.length < 9, true);
  assertEquals(await shortened.countInput() <= 60, true);
});

Deno.test("an answer that does not fit beside its input is rejected as by vendors", async () => {
  const row = { ...model("acme/small", [{ upstream: "embedded", model: "echo" }]), context_length: 100 };
  await using gateway = startGateway({ models: [row] });
  const input = "one two three four five six seven eight nine ten";
  const ask = (max_output_tokens: number, truncation: string) =>
    gateway.ask("responses", { model: "acme/small", input, max_output_tokens, truncation });
  const answered = await ask(50, "disabled");
  assertEquals(answered.status, 200, await answered.text());
  for (const truncation of ["disabled", "auto"]) {
    const refused = await ask(99, truncation);
    assertEquals(refused.status, 400);
    assertEquals((await refused.json()).error.code, "context_length_exceeded");
  }
});

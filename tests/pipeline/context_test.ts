import { assertEquals, assertRejects } from "@std/assert";
import type { Prompt } from "../../lib/canonical/types.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import { GatewayError } from "../../lib/errors.ts";
import { fitContext } from "../../lib/pipeline/context.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";

function modelOf(context_length: number): Model {
  return modelSchema.parse({
    id: "acme/one",
    created: 1,
    context_length,
    pricing: { prompt: "0", completion: "0" },
    targets: [{ upstream: "embedded", model: "echo" }],
  });
}

/** A prompt of so many turns. */
function promptOf(turns: number, truncation?: "auto"): Prompt {
  const input = Array.from({ length: turns }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: "one two three four five six seven eight nine ten",
  }));
  return responses.readPrompt({ model: "acme/one", input, ...(truncation !== undefined && { truncation }) });
}

Deno.test("fitContext() leaves the counting to an upstream that checks for itself", async () => {
  const prompt = promptOf(9);
  const fitted = await fitContext(prompt, { model: modelOf(5), codec: responses, checkedUpstream: true });
  assertEquals(fitted.prompt === prompt, true);
  const counts = await Promise.all([fitted.countInput(), fitted.countInput()]);
  assertEquals(counts[0] > 90 && counts[0] === counts[1], true, `${counts}`);
});

Deno.test("fitContext() refuses what is too long, in the protocol's own words", async () => {
  const error = await assertRejects(
    async () => await fitContext(promptOf(9), { model: modelOf(50), codec: chat, checkedUpstream: false }),
    GatewayError,
  );
  assertEquals([error.kind, error.code], ["invalid", "context_length_exceeded"]);
});

Deno.test("fitContext() drops the oldest turns where the client wants it, whoever checks", async () => {
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

Deno.test("fitContext() refuses a last turn that is too long by itself", async () => {
  await assertRejects(
    async () => await fitContext(promptOf(1, "auto"), { model: modelOf(3), codec: responses, checkedUpstream: true }),
    GatewayError,
  );
});

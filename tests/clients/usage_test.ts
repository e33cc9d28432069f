/** The same prompt with the same answer costs the same, whichever way it takes. */
import { assertEquals } from "@std/assert";
import type Anthropic from "anthropic-1";
import { crossAnthropic, crossOpenai } from "./sdks.ts";
import { ECHO, ROUTES, sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

const [EMBEDDED] = ROUTES.filter(({ model }) => model === ECHO);
const ASKED = ["Hello there, gateway", 'Look.\ncall:clock {"zone":"Oslo"}'];
const PARAMETERS = { type: "object" as const, properties: { zone: { type: "string" } } };

crossOpenai("usage is the same as without an upstream", gateway, async ({ client, model, Sdk }) => {
  if (EMBEDDED === undefined) return;
  const { url, key } = gateway(EMBEDDED);
  const direct = new Sdk({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  for (const content of ASKED) {
    const [crossed, own] = await Promise.all(
      [[client, model] as const, [direct, ECHO] as const].map(async ([client, model]) => {
        const chat = {
          model,
          messages: [{ role: "system" as const, content: "Be brief." }, { role: "user" as const, content }],
          tools: [{ type: "function" as const, function: { name: "clock", parameters: PARAMETERS } }],
        };
        const responses = {
          model,
          instructions: "Be brief.",
          input: content,
          tools: [{ type: "function" as const, name: "clock", parameters: PARAMETERS, strict: false }],
        };
        const stream = client.chat.completions.stream({ ...chat, stream_options: { include_usage: true } });
        return [
          (await client.chat.completions.create(chat)).usage,
          (await stream.finalChatCompletion()).usage,
          (await client.responses.create(responses)).usage,
          (await client.responses.stream(responses).finalResponse()).usage,
        ];
      }),
    );
    assertEquals(crossed, own);
  }
}, ROUTES.filter((route) => route !== EMBEDDED));

crossAnthropic("usage is the same as without an upstream", gateway, async ({ client, model, Sdk }) => {
  if (EMBEDDED === undefined) return;
  const { url, key } = gateway(EMBEDDED);
  const direct = new Sdk({ baseURL: `${url}/anthropic`, apiKey: key, authToken: null, maxRetries: 0 });
  for (const content of ASKED) {
    const [crossed, own] = await Promise.all(
      [[client, model] as const, [direct, ECHO] as const].map(async ([client, model]) => {
        const request: Anthropic.MessageCreateParamsNonStreaming = {
          model,
          max_tokens: 100,
          system: "Be brief.",
          messages: [{ role: "user", content }],
          tools: [{ name: "clock", input_schema: PARAMETERS }],
        };
        const { usage: whole } = await client.messages.create(request);
        const { usage: streamed } = await client.messages.stream(request).finalMessage();
        return [whole, streamed].map(({ input_tokens, output_tokens, cache_read_input_tokens }) => [
          input_tokens,
          output_tokens,
          cache_read_input_tokens ?? 0,
        ]);
      }),
    );
    assertEquals(crossed, own);
  }
}, ROUTES.filter((route) => route !== EMBEDDED));

import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import type { KeptEntry } from "../../lib/store/ledger.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { entriesOf } from "../e2e/request/world.ts";
import { events, json, startUpstream } from "../upstream/mod.ts";

const WORDS = "Some words that are counted. ";
const CALL = { index: 0, id: "c", type: "function", function: { name: "look", arguments: '{"at":"this"}' } };

/** Answers of an upstream that reports no usage, by the number of choices. */
const UPSTREAMS: Record<"chat" | "gemini", (choices: number) => { whole: JsonObject; chunks: JsonObject[] }> = {
  chat(choices) {
    const head = { id: "a", created: 1, model: "real-one" };
    const list = (choice: JsonObject) => Array.from({ length: choices }, (_, index) => ({ index, ...choice }));
    const message = { role: "assistant", content: WORDS + WORDS, tool_calls: [CALL] };
    const chunk = { ...head, object: "chat.completion.chunk" };
    return {
      whole: { ...head, object: "chat.completion", choices: list({ message, finish_reason: "tool_calls" }) },
      chunks: [
        ...[WORDS, WORDS].flatMap((content) =>
          list({ delta: { content } }).map((one) => ({ ...chunk, choices: [one] }))
        ),
        { ...chunk, choices: list({ delta: { tool_calls: [CALL] } }) },
        ...list({ delta: {}, finish_reason: "tool_calls" }).map((one) => ({ ...chunk, choices: [one] })),
      ],
    };
  },
  gemini(choices) {
    const part = (text: string, more: JsonObject = {}) => ({
      candidates: Array.from({ length: choices }, (_, index) => ({
        index,
        content: { role: "model", parts: [{ text }] },
        ...more,
      })),
    });
    return {
      whole: part(WORDS + WORDS, { finishReason: "STOP" }),
      chunks: [part(WORDS), part(WORDS, { finishReason: "STOP" })],
    };
  },
};

/** The charged output tokens of a request for several answers. */
async function charged(
  protocol: "chat" | "gemini",
  { wanted, made, stream }: { wanted: number; made: number; stream: boolean },
): Promise<KeptEntry["tokens"]["completion"]> {
  const { whole, chunks } = UPSTREAMS[protocol](made);
  const done = protocol === "chat" ? "data: [DONE]\n\n" : "";
  await using server = startUpstream(() =>
    stream ? events(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + done) : json(whole)
  );
  await using gateway = startGateway(oneModel(protocol, server.url));
  const content = protocol === "chat"
    ? { messages: [{ role: "user", content: "Hi" }], n: wanted }
    : { contents: [{ role: "user", parts: [{ text: "Hi" }] }], generationConfig: { candidateCount: wanted } };
  const response = await gateway.ask(protocol, { model: "acme/one", ...content, stream });
  assertEquals(response.status, 200, await response.text());
  const [entry] = await entriesOf(gateway.store.ledger, 1);
  assertEquals(entry?.source, "counted");
  return entry?.tokens.completion ?? 0;
}

for (const protocol of ["chat", "gemini"] as const) {
  for (const stream of [false, true]) {
    Deno.test(`${protocol}, ${stream ? "streamed" : "whole"}: each of several answers is counted`, async () => {
      const one = await charged(protocol, { wanted: 1, made: 1, stream });
      assertEquals(await charged(protocol, { wanted: 3, made: 3, stream }), 3 * one);
      assertEquals(await charged(protocol, { wanted: 3, made: 1, stream }), one, "the host makes one only");
      assertEquals(await charged(protocol, { wanted: 2, made: 3, stream }), 2 * one, "the host makes more than wanted");
    });
  }
}

/** The rule that each refused request broke, as the ledger and `explain` name it, without any text of the client. */
import { assert, assertEquals } from "@std/assert";
import { whyText } from "../../../lib/billing/reports/reason_text.ts";
import { model, startGateway, upstream } from "../../support/gateway.ts";
import { json, startUpstream } from "../../upstream/mod.ts";
import { WHOLE } from "../../upstream/replies.ts";
import { entriesOf } from "./world.ts";

/** Text of the client alone. An error text that quotes it is cut as a whole, although it contains quotation marks. */
const SECRET = 'zanzibar" zanzibar zanzibar "zanzibar';

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const MESSAGES = "/anthropic/v1/messages";
const GEMINI = "/v1beta/models/acme%2Fone:generateContent";
const IMAGES = "/v1/images/generations";
const EDITS = "/v1/images/edits";
const EMBEDDINGS = "/v1/embeddings";
const RERANK = "/v1/rerank";

const user = { role: "user", content: SECRET };
const chat = { model: "acme/one", messages: [user] };
const image = { model: "sluice/canvas", quality: "low", prompt: SECRET };
const messages = { ...chat, max_tokens: 10 };

/** Requests, and the rules that they break. */
const CASES: [path: string, body: BodyInit | Record<string, unknown>, rule: string][] = [
  [CHAT, `{"model": "acme/one", "${"zanzibar"}"`, 'Cannot read the body as JSON: Expected ":" at position 32'],
  [CHAT, '{"zanzibar": 1, "zanzibar": 2}', "Cannot read the body as JSON: Expected each member once, … comes twice"],
  [CHAT, "[]", "Cannot read the body: expected a JSON object"],
  [CHAT, {}, "Missing required parameter"],
  [CHAT, { ...chat, temperature: SECRET }, "Expected a number, not a string"],
  [CHAT, { ...chat, metadata: { [SECRET]: 7 } }, "Expected a string, not a number"],
  [CHAT, { ...chat, max_tokens: 999_999_999 }, "at most "],
  [CHAT, { ...chat, functions: [{ name: "zanzibar" }], tools: [{ type: "function", function: { name: "a" } }] }, ""],
  [
    CHAT,
    { ...chat, tool_choice: { type: "function", function: { name: "zanzibar" } } },
    "the request has no tool called …",
  ],
  [CHAT, {
    ...chat,
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:zanzibar" } }] }],
  }, ""],
  [CHAT, { ...chat, provider: { order: [SECRET], only: [SECRET] } }, ""],
  [RESPONSES, {
    model: "acme/one",
    input: SECRET,
    top_logprobs: 2,
    truncation: "auto",
    provider: { require_parameters: true },
  }, "provider.require_parameters: "],
  [CHAT, { ...chat, top_logprobs: 2 }, "logprobs is not true"],
  [RESPONSES, { model: "acme/one", input: [{ type: SECRET }] }, ""],
  [RESPONSES, { model: "acme/one", input: SECRET, background: true }, "Cannot run in the background"],
  [RESPONSES, { model: "acme/one", input: SECRET, previous_response_id: SECRET }, ""],
  [MESSAGES, { ...messages, messages: [{ role: "user", content: [{ type: SECRET }] }] }, ""],
  [MESSAGES, { ...messages, thinking: { type: "enabled", budget_tokens: 2000 } }, ""],
  [MESSAGES, { ...messages, tool_choice: { type: SECRET } }, ""],
  [GEMINI, { contents: [] }, "Expected at least 1 item"],
  [GEMINI, { contents: [{ parts: [{ inlineData: { mimeType: "image/png", data: "zanzibar!" } }] }] }, ""],
  [GEMINI, { contents: [{ parts: [{ text: SECRET, inlineData: { mimeType: SECRET, data: "" } }] }] }, ""],
  [IMAGES, { ...image, size: "zanzibar" }, "expected …"],
  [IMAGES, { ...image, n: 99 }, ""],
  [EDITS, form({ ...image, zanzibar: SECRET }), ""],
  [EDITS, form({ ...image, image: new Blob([SECRET]) }), ""],
  [EDITS, form({ ...image }), "image (a PNG, JPEG or WebP file)"],
  [EMBEDDINGS, { model: "sluice/embed", input: [SECRET, ""] }, "Expected a text that is not empty"],
  [EMBEDDINGS, { model: "sluice/embed", input: SECRET, dimensions: 999_999 }, ""],
  [EMBEDDINGS, { model: "sluice/embed", INPUT: SECRET }, ""],
  [RERANK, { model: "sluice/embed", query: SECRET, documents: [SECRET] }, ""],
  [RERANK, { model: "sluice/rerank", query: SECRET, documents: [] }, ""],
];

function form(fields: Record<string, string | Blob>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

Deno.test("every request that validation refuses is entered with its rule, and without text of the client", async () => {
  await using up = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway({
    upstreams: { one: upstream("openai", up.url, { protocols: ["chat"] }) },
    models: [model("acme/one", [{ upstream: "one", model: "m" }])],
  }, { described: false });
  for (const [at, [path, body, expected]] of CASES.entries()) {
    const isPlain = typeof body === "object" && !(body instanceof FormData);
    const response = await fetch(gateway.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${gateway.key.key}`,
        "x-api-key": gateway.key.key,
        "x-goog-api-key": gateway.key.key,
        "anthropic-version": "2023-06-01",
        ...(!(body instanceof FormData) && { "content-type": "application/json" }),
      },
      body: isPlain ? JSON.stringify(body) : body as BodyInit,
    });
    const answer = await response.text();
    const about = `${path} ${isPlain ? JSON.stringify(body) : body}: ${answer}`;
    assertEquals(response.status, 400, about);
    await gateway.gateway.backgroundTasks.done();
    const entry = (await entriesOf(gateway.store.ledger, at + 1))[at];
    assert(entry !== undefined);
    const { code, rule = "" } = entry.details?.reason ?? {};
    assertEquals(code, "invalid", about);
    assert(rule !== "" && rule.length <= 200 && rule.includes(expected), `${about}\n${rule}`);
    assert(!JSON.stringify(entry.details).includes("zanzibar"), `${about}\n${rule}`);
    assert(whyText(entry, "anna")?.endsWith(rule) || whyText(entry, "anna")?.includes(`${rule} (`), about);
  }
  assertEquals(up.requests.length, 0);
});

import { assert, assertEquals } from "@std/assert";
import { anthropicErrorSchema, openaiErrorSchema } from "../lib/openapi/schemas.ts";
import { exchange, head, type RawResponse } from "./http/serve.ts";
import { type Mutant, mutate, randomFrom, type Seed } from "./mutations.ts";
import { startGateway } from "./whole_gateway.ts";

/** Another one: `SLUICE_FUZZ_SEED=7 SLUICE_FUZZ_REQUESTS=100000 deno task test`. */
const SEED = Number(Deno.env.get("SLUICE_FUZZ_SEED") ?? 20_261_121);
const REQUESTS = Number(Deno.env.get("SLUICE_FUZZ_REQUESTS") ?? 4000);
const AT_ONCE = 16;
/** Longest time for an answer; the server's own limits of this test are far shorter. */
const PATIENCE_MS = 3000;

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAAElFTkSuQmCC";
const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };

function seeds(key: string): Seed[] {
  const bearer = { authorization: `Bearer ${key}` };
  const native = { "x-api-key": key, "anthropic-version": "2023-06-01" };
  const post = (path: string, body: Seed["body"]): Seed => ({
    method: "POST",
    path,
    headers: path.startsWith("/anthropic") ? native : bearer,
    body: { model: "sluice/echo", ...body },
  });
  const get = (path: string): Seed => ({
    method: "GET",
    path,
    headers: path.startsWith("/anthropic") ? native : bearer,
  });
  const messages = {
    max_tokens: 2000,
    system: [{ type: "text", text: "Be kind", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PNG } }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { a: "b" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "c" }, { type: "text", text: "d" }] },
    ],
    tools: [{ name: "f", input_schema: SCHEMA }],
    tool_choice: { type: "auto" },
  };
  return [
    ...["/v1/models", "/v1/models/sluice", "/v1/models/sluice%2Fecho", "/v1/models/sluice/echo"].map(get),
    ...["/anthropic/v1/models", "/anthropic/v1/models/sluice/echo", "/openapi.json", "/healthz", "/readyz"].map(get),
    ...[true, false].flatMap((stream) => [
      post("/v1/chat/completions", {
        stream,
        messages: [
          { role: "system", content: "Be kind" },
          { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }] },
          { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
          { role: "tool", tool_call_id: "c", content: "done" },
        ],
        tools: [{ type: "function", function: { name: "f", parameters: SCHEMA } }],
        stop: ["x"],
        max_tokens: 50,
        reasoning_effort: "low",
        metadata: { a: "b" },
      }),
      post("/v1/chat/completions", {
        stream,
        messages: [{ role: "user", content: "call:f {}" }],
        response_format: { type: "json_schema", json_schema: { name: "n", schema: SCHEMA } },
      }),
      post("/v1/responses", {
        stream,
        instructions: "Be kind",
        input: [
          { role: "user", content: [{ type: "input_text", text: "call:f {}" }] },
          { type: "reasoning", summary: [{ type: "summary_text", text: "a" }] },
          { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
          { type: "function_call_output", call_id: "c", output: "done" },
        ],
        tools: [{ type: "function", name: "f", parameters: SCHEMA }],
        reasoning: { effort: "low", summary: "auto" },
        text: { format: { type: "json_schema", name: "n", schema: SCHEMA } },
        include: ["reasoning.encrypted_content"],
        truncation: "auto",
      }),
      post("/anthropic/v1/messages", { ...messages, stream }),
      post("/anthropic/v1/messages", {
        ...messages,
        stream,
        thinking: { type: "enabled", budget_tokens: 1024 },
        output_config: { format: { type: "json_schema", schema: SCHEMA } },
      }),
    ]),
    post("/anthropic/v1/messages/count_tokens", messages),
  ];
}

/** What is wrong with an answer; `undefined` where it is as it should be. */
function complaint({ status, headers, body }: RawResponse, { bytes, soundHead, isNative }: Mutant): string | undefined {
  if (status >= 500) return "the gateway failed";
  // The server refuses what it cannot frame by itself: without a body, or without a word.
  if (!soundHead && !headers.has("x-request-id")) return status === 0 || status === 400 ? undefined : "no request id";
  if (!/^req_[a-z0-9]+$/.test(headers.get("x-request-id") ?? "")) return "no request id";
  const isHead = bytes[0] === "H".charCodeAt(0);
  if (status >= 400) {
    if (isHead) return body === "" ? undefined : "HEAD has a body";
    const { error } = (isNative ? anthropicErrorSchema : openaiErrorSchema).safeParse(JSON.parse(body));
    return error === undefined ? undefined : `the error is of another shape: ${error.message}`;
  }
  if (isHead || status === 304) return undefined;
  if (!headers.get("content-type")?.startsWith("text/event-stream")) return void JSON.parse(body);
  const end = isNative ? /event: message_stop\ndata: .*\n\n/ : /data: \[DONE\]\n\n/;
  return end.test(body) ? undefined : "the stream has no end";
}

Deno.test(`${REQUESTS} broken requests are each answered in the shape of their protocol (seed ${SEED})`, async () => {
  const limits = { body_gap_ms: 200, body_grace_ms: 200, body_total_ms: 1000 };
  await using gateway = startGateway({ limits });
  const sound = seeds(gateway.keys.good);
  const random = randomFrom(SEED);
  const statuses = new Map<number, number>();
  const mutants = Array.from({ length: REQUESTS }, (_, index) => mutate(sound[index % sound.length] as Seed, random));

  async function check(mutant: Mutant): Promise<void> {
    const start = performance.now();
    const response = await exchange(gateway.port, [mutant.bytes]);
    const tookMs = performance.now() - start;
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    let wrong: string | undefined;
    try {
      wrong = tookMs > PATIENCE_MS ? `no answer within ${PATIENCE_MS} ms` : complaint(response, mutant);
    } catch (error) {
      wrong = String(error);
    }
    assert(
      wrong === undefined,
      `Seed ${SEED}: ${wrong}\n${new TextDecoder().decode(mutant.bytes)}\n${response.status} ${
        response.body.slice(0, 2000)
      }`,
    );
  }
  const queue = mutants.values();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (const mutant of queue) await check(mutant);
  }));

  assertEquals(gateway.logs, [], `seed ${SEED}`);
  assertEquals((await exchange(gateway.port, [head("GET /healthz", { connection: "close" })])).status, 200);
  // A fuzz test whose requests are all refused alike tests nothing.
  for (const status of [200, 400]) {
    assert((statuses.get(status) ?? 0) > REQUESTS / 10, `${JSON.stringify([...statuses])}`);
  }
});

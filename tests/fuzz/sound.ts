/** Valid requests for every endpoint, from which broken ones are made. */
import type { JsonObject } from "../../lib/json/mod.ts";
import { png } from "../images/image_files.ts";
import { SPOKEN } from "../e2e/fault/matrix/sound_answer.ts";
import { field, file } from "./forms.ts";
import type { Sound } from "./requests.ts";

/** Keys of the sender. */
export interface Asker {
  key: string;
  admin: string;
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAAElFTkSuQmCC";
const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };

/** Models at upstreams, one for each upstream protocol. */
const OUTSIDE: readonly string[] = SPOKEN.map((spoken) => `acme/${spoken}`);

/** Factor by which images are rarer: the model paints them. */
const PAINTED = 0.04;

/** One for each endpoint and way of asking. */
export function soundRequests({ key, admin }: Asker): Sound[] {
  const bearer = { authorization: `Bearer ${key}` };
  const operator = { authorization: `Bearer ${admin}` };
  const native = { "x-api-key": key, "anthropic-version": "2023-06-01" };
  const google = { "x-goog-api-key": key };
  const headersOf = (path: string) =>
    path.startsWith("/v1beta")
      ? google
      : path.startsWith("/anthropic")
      ? native
      : path.startsWith("/admin")
      ? operator
      : bearer;
  const ask = (method: string, path: string, json?: JsonObject): Sound => ({
    method,
    path,
    headers: { ...headersOf(path), ...(json !== undefined && { "content-type": "application/json" }) },
    ...(json !== undefined && { json }),
  });
  const post = (path: string, json: JsonObject) => ask("POST", path, json);
  return [
    ...[
      "/v1/models",
      "/v1/models/sluice",
      "/v1/models/sluice%2Fecho",
      "/v1/models/sluice/echo",
      "/anthropic/v1/models",
      "/anthropic/v1/models/sluice/echo",
      "/anthropic/api/hello",
      "/v1beta/models",
      "/v1beta/models/sluice/echo",
      "/openapi.json",
      "/healthz",
      "/readyz",
      "/admin/v1/keys",
      "/admin/v1/keys/victim",
      "/admin/v1/health",
      "/admin/v1/config",
      "/admin/v1/openapi.json",
      "/admin/v1/usage/nobody",
    ].map((path) => ({ ...ask("GET", path), weight: 0.5 })),
    // These read the whole ledger.
    { ...ask("GET", "/admin/v1/usage?since=7d&by=model"), weight: 0.2 },
    { ...post("/admin/v1/audit", {}), weight: 0.02 },
    { ...post("/admin/v1/keys", { name: "new", group: "default", rules: { endpoints: ["chat"] } }), weight: 0.3 },
    ask("PATCH", "/admin/v1/keys/victim", { disabled: false, rules: { limits: { requests_per_minute: 5 } } }),
    { ...ask("DELETE", "/admin/v1/keys/nobody"), weight: 0.3 },
    { ...post("/admin/v1/keys/victim/rotate", { overlap: "1h" }), weight: 0.3 },
    { ...post("/admin/v1/reload", {}), weight: 0.3 },
    ...["sluice/echo", ...OUTSIDE].flatMap((model) =>
      [true, false].flatMap((stream) => [
        ...texts({ model, stream }).map(([path, json]) => ({
          ...post(path, json),
          weight: model.startsWith("a") ? 1 : 2,
        })),
      ])
    ),
    post("/v1beta/models/sluice/echo:countTokens", contents()),
    post("/anthropic/v1/messages/count_tokens", { model: "sluice/echo", ...conversation() }),
    post("/v1/embeddings", {
      model: "sluice/embed",
      input: ["A lake", "Ein See", "湖"],
      dimensions: 64,
      encoding_format: "base64",
      user: "u",
    }),
    post("/v1/embeddings", { model: "sluice/embed", input: [[1, 2, 3], [4]], models: ["sluice/embed"] }),
    post("/v1/rerank", {
      model: "sluice/rerank",
      query: "lake",
      documents: ["A lake", { text: "A hill" }],
      top_n: 1,
      return_documents: true,
    }),
    ...images(bearer),
  ];
}

function texts({ model, stream }: { model: string; stream: boolean }): [path: string, json: JsonObject][] {
  return [
    ["/v1/chat/completions", {
      model,
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
    }],
    ["/v1/chat/completions", {
      model,
      stream,
      messages: [{ role: "user", content: "call:f {}" }],
      response_format: { type: "json_schema", json_schema: { name: "n", schema: SCHEMA } },
      provider: { order: ["embedded"], sort: "price", max_price: { prompt: "1" } },
      models: ["sluice/echo"],
      stream_options: stream ? { include_usage: true } : null,
    }],
    ["/v1/responses", {
      model,
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
    }],
    [`/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`, {
      ...contents(),
      generationConfig: { maxOutputTokens: 2000, stopSequences: ["x"], thinkingConfig: { thinkingBudget: 1024 } },
    }],
    ["/anthropic/v1/messages", { model, stream, max_tokens: 2000, ...conversation() }],
    ["/anthropic/v1/messages", {
      model,
      stream,
      max_tokens: 2000,
      ...conversation(),
      thinking: { type: "enabled", budget_tokens: 1024 },
      output_config: { format: { type: "json_schema", schema: SCHEMA } },
    }],
  ];
}

function contents(): JsonObject {
  return {
    systemInstruction: { parts: [{ text: "Be kind" }] },
    contents: [
      { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PNG } }, { text: "call:f {}" }] },
      { role: "model", parts: [{ functionCall: { name: "f", args: { a: "b" } } }] },
      { role: "user", parts: [{ functionResponse: { name: "f", response: { output: "done" } } }] },
    ],
    tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: SCHEMA }] }],
    toolConfig: { functionCallingConfig: { mode: "AUTO" } },
  };
}

function conversation(): JsonObject {
  return {
    system: [{ type: "text", text: "Be kind", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PNG } }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { a: "b" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "c" }, { type: "text", text: "d" }] },
    ],
    tools: [{ name: "f", input_schema: SCHEMA }],
    tool_choice: { type: "auto" },
  };
}

function images(bearer: Readonly<Record<string, string>>): Sound[] {
  const json = { "content-type": "application/json", ...bearer };
  const generation = {
    model: "sluice/canvas",
    prompt: "A lake",
    size: "1024x640",
    n: 1,
    quality: "low",
    output_format: "png",
    background: "auto",
    user: "u",
  };
  return [
    { method: "POST", path: "/v1/images/generations", headers: json, json: generation, weight: PAINTED },
    {
      method: "POST",
      path: "/v1/images/generations",
      headers: { ...json, "idempotency-key": "once" },
      json: { ...generation, stream: true, partial_images: 1 },
      weight: PAINTED,
    },
    {
      method: "POST",
      path: "/v1/images/edits",
      headers: bearer,
      form: [
        field("model", "sluice/canvas"),
        field("prompt", "Blue"),
        field("size", "1024x640"),
        field("n", "1"),
        field("stream", "false"),
        file("image[]", png(64, 48)),
        file("mask", png(64, 48)),
      ],
      weight: 10 * PAINTED,
    },
  ];
}

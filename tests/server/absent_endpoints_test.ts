import { assertEquals, assertMatch } from "@std/assert";
import { startKeyed } from "../support/keyed_gateway.ts";

/** Paths as clients ask for them, and the endpoint that the message names. */
const ABSENT: readonly (readonly [path: string, endpoint: string])[] = [
  ["/v1/completions", "/v1/completions"],
  ["/v1/files", "/v1/files"],
  ["/v1/files/file-1/content?a=b", "/v1/files"],
  ["/v1/uploads/upload_1/parts", "/v1/uploads"],
  ["/v1/batches", "/v1/batches"],
  ["/v1/moderations", "/v1/moderations"],
  ["/v1/audio/speech", "/v1/audio"],
  ["/v1/audio/transcriptions", "/v1/audio"],
  ["/v1/assistants", "/v1/assistants"],
  ["/v1/threads/thread_1/runs", "/v1/threads"],
  ["/v1/vector_stores/vs_1/search", "/v1/vector_stores"],
  ["/v1/fine_tuning/jobs", "/v1/fine_tuning"],
  ["/v1/videos", "/v1/videos"],
  ["/v1/realtime/client_secrets", "/v1/realtime"],
  ["/v1/conversations/conv_1/items", "/v1/conversations"],
  ["/v1/containers", "/v1/containers"],
  ["/v1/images/variations", "/v1/images/variations"],
  ["/v1/responses/resp_1", "/v1/responses/{id}"],
  ["/v1/responses/resp_1/cancel", "/v1/responses/{id}"],
  ["/v1/chat/completions/chatcmpl_1/messages", "/v1/chat/completions/{id}"],
  ["/anthropic/v1/files/file_1", "/anthropic/v1/files"],
  ["/anthropic/v1/messages/batches", "/anthropic/v1/messages/batches"],
  ["/anthropic/v1/messages/batches/msgbatch_1/results", "/anthropic/v1/messages/batches"],
  ["/anthropic/v1/skills", "/anthropic/v1/skills"],
  ["/anthropic/v1/complete", "/anthropic/v1/complete"],
  ["/v1beta/files/file_1", "/v1beta/files"],
  ["/v1beta/cachedContents?key=x", "/v1beta/cachedContents"],
];

/** Paths for which the base URL is wrong, or that no vendor has. */
const WRONG = `
  /embeddings /chat/completions /v1/v1/embeddings /v1/messages /v1/responses/ /v1/embeddingsx /v1/constructor
  /anthropic/files /anthropic/v1/embeddings /anthropic/v1/messages/other /v1beta/v1beta/models`.trim().split(/\s+/);

/** Paths for which the base URL is wrong, or the path has a slash too many, and the path that the client means. */
const MEANT: readonly (readonly [path: string, meant: string])[] = [
  ["/chat/completions", "/v1/chat/completions"],
  ["/v1/v1/chat/completions", "/v1/chat/completions"],
  ["/openai/v1/chat/completions", "/v1/chat/completions"],
  ["/v1/chat/completions/chat/completions", "/v1/chat/completions"],
  ["/v1/chat/completions/models", "/v1/models"],
  ["/V1/responses/", "/v1/responses"],
  ["/v1/responses/responses", "/v1/responses"],
  ["/v1/messages", "/anthropic/v1/messages"],
  ["/anthropic/v1/v1/messages", "/anthropic/v1/messages"],
  ["/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens"],
  ["/anthropic/models", "/anthropic/v1/models"],
  ["/models", "/v1/models"],
  ["/v1beta/v1beta/models", "/v1beta/models"],
  ["/v1beta/v1/models/a/b:streamGenerateContent?alt=sse", "/v1beta/models/{model}:streamGenerateContent"],
  ["/v1beta1/publishers/google/models/gemini:generateContent", "/v1beta/models/{model}:generateContent"],
  ["/v1beta/openai/chat/completions", "/v1/chat/completions"],
  ["/v1/v1/images/edits", "/v1/images/edits"],
  ["/v1//chat/completions", "/v1/chat/completions"],
  ["//v1/models", "/v1/models"],
  ["/anthropic//v1/messages", "/anthropic/v1/messages"],
];

Deno.test("a path with a wrong base URL is 404 with the path that the client means", async () => {
  await using gateway = startKeyed();
  for (const [path, meant] of MEANT) {
    const response = await fetch(gateway.url + path, { method: "POST" });
    const { error } = await response.json();
    assertEquals(response.status, 404, path);
    assertMatch(error.message, new RegExp(`^Cannot find this path: .*; did you mean ${RegExp.escape(meant)}\\?`), path);
  }
});

Deno.test("endpoints of Google that Sluice lacks are 404 in Google's shape, also under /v1", async () => {
  await using gateway = startKeyed();
  const headers = { "x-goog-api-key": "key" };
  // The paths of @google/genai 3.
  for (const path of ["/v1/cachedContents", "/v1/files", "/v1/interactions", "/v1/batches", "/upload/v1/files"]) {
    const { error } = await (await fetch(gateway.url + path, { method: "POST", headers })).json();
    const message = `Cannot use this endpoint: Sluice does not have ${path}`;
    assertEquals(error, { code: 404, message, status: "NOT_FOUND" });
  }
});

Deno.test("vendor endpoints that Sluice lacks are 404 with their name, in the shape of their protocol", async () => {
  await using gateway = startKeyed();
  for (const method of ["GET", "POST", "DELETE"]) {
    for (const [path, endpoint] of ABSENT) {
      const response = await fetch(gateway.url + path, { method });
      const { type, error } = await response.json();
      const isNative = path.startsWith("/anthropic");
      const isGoogles = path.startsWith("/v1beta");
      assertEquals(
        [response.status, error.message, type, isGoogles ? error.status : error.type],
        [
          404,
          `Cannot use this endpoint: Sluice does not have ${endpoint}`,
          isNative ? "error" : undefined,
          isNative ? "not_found_error" : isGoogles ? "NOT_FOUND" : "invalid_request_error",
        ],
        path,
      );
    }
  }
  for (const path of WRONG) {
    const response = await fetch(gateway.url + path, { method: "POST" });
    const { error } = await response.json();
    assertEquals(response.status, 404, path);
    assertMatch(error.message, /base URL of OpenAI clients ends with \/v1, .*\/anthropic, .*port$/, path);
  }
});

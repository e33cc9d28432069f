/** Errors of every class in the SDKs, and the list of models. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { APIError } from "openai-7";
import { sharedGateway } from "./gateway.ts";
import { anthropic, caught, openai, testAnthropic, testOpenai } from "./sdks.ts";
import { ECHO } from "./upstreams.ts";

const MAIN = "main-key-of-the-tests";
const NARROW = "narrow-key-of-the-tests";

const gateway = sharedGateway({
  config: {
    groups: { main: {}, narrow: { models: ["acme/*"], endpoints: ["models", "chat", "messages"] } },
    resource_limits: { json_body_bytes: 20_000 },
    models: [{
      id: "acme/parrot",
      created: 1_700_000_000,
      context_length: 4096,
      pricing: { prompt: "0", completion: "0" },
      targets: [{ upstream: "embedded", model: "echo" }],
    }],
  },
  keys: { main: MAIN, narrow: NARROW },
});

const HELLO = { model: ECHO, messages: [{ role: "user" as const, content: "Hello" }] };
const LONG = { ...HELLO, messages: [{ role: "user" as const, content: "word ".repeat(10_000) }] };

/** The fields of an error that programs read. */
function fields({ status, type, code, param, requestID }: APIError): unknown {
  assertMatch(requestID ?? "", /^req_./);
  return { status, type, code, param };
}

testOpenai("a bad request is a BadRequestError that names the member", gateway, async ({ client, Sdk }) => {
  const chat = await caught(Sdk.BadRequestError, client.chat.completions.create({ ...HELLO, temperature: 9 }));
  assertEquals(fields(chat), { status: 400, type: "invalid_request_error", code: null, param: "temperature" });
  const responses = await caught(
    Sdk.BadRequestError,
    client.responses.create({ model: ECHO, input: "Hello", max_output_tokens: -1 }),
  );
  assertEquals(fields(responses), {
    status: 400,
    type: "invalid_request_error",
    code: null,
    param: "max_output_tokens",
  });
  const streamed = await caught(
    Sdk.BadRequestError,
    client.chat.completions.create({ ...HELLO, temperature: 9, stream: true }),
  );
  assertEquals(fields(streamed), fields(chat));
});

testOpenai("a wrong key is an AuthenticationError", gateway, async ({ Sdk, gateway }) => {
  const client = openai(Sdk, gateway, "sk-nobody");
  const calls = [
    () => client.chat.completions.create(HELLO),
    () => client.responses.create({ model: ECHO, input: "Hello" }),
    () => client.models.list(),
  ];
  for (const call of calls) {
    const error = await caught(Sdk.AuthenticationError, call());
    assertEquals(fields(error), { status: 401, type: "invalid_request_error", code: "invalid_api_key", param: null });
    assertEquals(error.message.includes("sk-nobody"), false);
  }
});

testOpenai(
  "a group without the model or the endpoint is a PermissionDeniedError",
  gateway,
  async ({ Sdk, gateway }) => {
    const client = openai(Sdk, gateway, NARROW);
    const model = await caught(Sdk.PermissionDeniedError, client.chat.completions.create(HELLO));
    assertEquals(fields(model), {
      status: 403,
      type: "invalid_request_error",
      code: "access_denied",
      param: "model",
    });
    const endpoint = await caught(Sdk.PermissionDeniedError, client.responses.create({ model: ECHO, input: "Hello" }));
    assertStringIncludes(endpoint.message, "responses");
  },
);

testOpenai("an unknown model is a NotFoundError", gateway, async ({ client, Sdk }) => {
  const calls = [
    () => client.chat.completions.create({ ...HELLO, model: "acme/nobody" }),
    () => client.responses.create({ model: "acme/nobody", input: "Hello" }),
    () => client.models.retrieve("acme/nobody"),
  ];
  for (const call of calls) {
    const error = await caught(Sdk.NotFoundError, call());
    assertEquals([error.status, error.code], [404, "model_not_found"]);
    assertMatch(error.requestID ?? "", /^req_./);
  }
});

testOpenai("a body that is too large is status 413", gateway, async ({ client, Sdk }) => {
  const error = await caught(Sdk.APIError, client.chat.completions.create(LONG));
  assertEquals(fields(error), {
    status: 413,
    type: "invalid_request_error",
    code: "request_too_large",
    param: null,
  });
  const { choices: [choice] } = await client.chat.completions.create(HELLO);
  assertEquals(choice?.message.content, "Hello");
});

testAnthropic("a bad request is a BadRequestError that names the member", gateway, async ({ client, Sdk }) => {
  for (const stream of [false, true]) {
    const call = client.messages.create({ ...HELLO, max_tokens: -1, stream });
    const error = await caught(Sdk.BadRequestError, call);
    assertEquals([error.status, error.type], [400, "invalid_request_error"]);
    assertMatch(error.requestID ?? "", /^req_./);
    assertMatch(error.message, /max_tokens/);
    assertEquals((error.error as { request_id: string }).request_id, error.requestID);
  }
});

testAnthropic("a wrong key is an AuthenticationError", gateway, async ({ Sdk, gateway }) => {
  const client = anthropic(Sdk, gateway, "sk-nobody");
  const calls = [
    () => client.messages.create({ ...HELLO, max_tokens: 5 }),
    () => client.messages.countTokens(HELLO),
    () => client.models.list(),
  ];
  for (const call of calls) {
    const error = await caught(Sdk.AuthenticationError, call());
    assertEquals([error.status, error.type], [401, "authentication_error"]);
    assertMatch(error.requestID ?? "", /^req_./);
  }
});

testAnthropic("a group without the model is a PermissionDeniedError", gateway, async ({ Sdk, gateway }) => {
  const client = anthropic(Sdk, gateway, NARROW);
  const calls = [
    () => client.messages.create({ ...HELLO, max_tokens: 5 }),
    () => client.messages.countTokens(HELLO),
  ];
  for (const call of calls) {
    const error = await caught(Sdk.PermissionDeniedError, call());
    assertEquals([error.status, error.type], [403, "permission_error"]);
    assertStringIncludes(error.message, ECHO);
  }
});

testAnthropic("an unknown model is a NotFoundError", gateway, async ({ client, Sdk }) => {
  const calls = [
    () => client.messages.create({ ...HELLO, model: "acme/nobody", max_tokens: 5 }),
    () => client.messages.countTokens({ ...HELLO, model: "acme/nobody" }),
    () => client.models.retrieve("acme/nobody"),
  ];
  for (const call of calls) {
    const error = await caught(Sdk.NotFoundError, call());
    assertEquals([error.status, error.type], [404, "not_found_error"]);
  }
});

testAnthropic("a body that is too large is status 413", gateway, async ({ client, Sdk }) => {
  const error = await caught(Sdk.APIError, client.messages.create({ ...LONG, max_tokens: 5 }));
  assertEquals([error.status, error.type], [413, "request_too_large"]);
  assertMatch(error.requestID ?? "", /^req_./);
});

testOpenai("models are listed and found", gateway, async ({ client }) => {
  const listed = await Array.fromAsync(client.models.list());
  assertEquals(listed.map(({ id }) => id).sort(), [
    "acme/parrot",
    "sluice/canvas",
    ECHO,
    "sluice/embed",
    "sluice/rerank",
  ]);
  for (const model of listed) {
    assertEquals(model.object, "model");
    assertEquals(JSON.parse(JSON.stringify(await client.models.retrieve(model.id))), JSON.parse(JSON.stringify(model)));
  }
  const parrot = listed.find(({ id }) => id === "acme/parrot");
  assertEquals([parrot?.created, parrot?.owned_by], [1_700_000_000, "acme"]);
});

testAnthropic("models are listed and found", gateway, async ({ client }) => {
  const listed = await Array.fromAsync(client.models.list({ limit: 1000 }));
  assertEquals(listed.map(({ id }) => id).sort(), ["acme/parrot", ECHO]);
  for (const model of listed) {
    assertEquals([model.type, Number.isNaN(Date.parse(model.created_at))], ["model", false]);
    assertEquals(JSON.parse(JSON.stringify(await client.models.retrieve(model.id))), JSON.parse(JSON.stringify(model)));
  }
  assert(listed.every(({ display_name }) => display_name !== ""));
});

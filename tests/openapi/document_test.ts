import { assert, assertEquals, assertMatch } from "@std/assert";
import type { z } from "zod";
import { ACCESS, isOperatorCredential } from "../../lib/access/access_table.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import { openapiDocument } from "../../lib/openapi/document.ts";
import * as schemas from "../../lib/openapi/schemas.ts";
import { messageOf } from "../../lib/errors.ts";
import { routes } from "../../routes/manifest.ts";
import { createDescribedApp } from "../support/described_answers.ts";
import { type KeyedGateway, startKeyed } from "../support/keyed_gateway.ts";

const DOCUMENT = openapiDocument();

/** The value at a JSON pointer within the document. */
function at(pointer: string): Json | undefined {
  let value: Json | undefined = DOCUMENT;
  for (const part of pointer.split("/").slice(1)) {
    value = isObject(value) ? value[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  }
  return value;
}

function* references(value: Json | undefined): Generator<string> {
  if (typeof value !== "object" || value === null) return;
  if (isObject(value) && typeof value.$ref === "string") yield value.$ref;
  for (const member of Object.values(value)) yield* references(member);
}

/** Operations by `METHOD path`, as the access table names them. */
function operations(): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>();
  for (const [path, methods] of Object.entries(DOCUMENT.paths as JsonObject)) {
    for (const [method, operation] of Object.entries(methods as JsonObject)) {
      const name = `${method.toUpperCase()} ${path.replaceAll("{", "[").replaceAll("}", "]")}`;
      found.set(name, operation as JsonObject);
    }
  }
  return found;
}

Deno.test("the description lists every client route, and nothing of the admin side", () => {
  const rows = Object.entries(ACCESS).filter(([, { credential }]) =>
    !isOperatorCredential(credential) && credential !== "metrics"
  );
  assertEquals([...operations().keys()].sort(), rows.map(([name]) => name).sort());
  assert(!JSON.stringify(DOCUMENT).includes("admin"));
});

Deno.test("the description is structurally valid OpenAPI 3.1", () => {
  assertEquals(DOCUMENT.openapi, "3.1.0");
  assert(
    isObject(DOCUMENT.info) && typeof DOCUMENT.info.title === "string" && typeof DOCUMENT.info.version === "string",
  );
  for (const [name, operation] of operations()) {
    const inPath = [...name.matchAll(/\[(\w+)\]/g)].map(([, parameter]) => parameter);
    const parameters = operation.parameters as JsonObject[];
    const described = parameters.filter((parameter) => parameter.in === "path").map((parameter) => parameter.name);
    assertEquals(described, inPath, name);
    for (const parameter of parameters) {
      assert(parameter.required === (parameter.in !== "query") && isObject(parameter.schema), name);
    }
    const replies = Object.entries(operation.responses as JsonObject);
    assert(replies.some(([status]) => status === "200" || status === "101"), name);
    for (const [status, reply] of replies) {
      assert(/^[1-5]\d\d$/.test(status) && typeof (reply as JsonObject).description === "string", `${name} ${status}`);
    }
    for (const requirement of (operation.security ?? []) as JsonObject[]) {
      for (const scheme of Object.keys(requirement)) assert(at(`/components/securitySchemes/${scheme}`), scheme);
    }
    assertEquals(operation.security === undefined, ACCESS[name]?.credential === "none", name);
  }
  for (const pointer of references(DOCUMENT)) assert(isObject(at(pointer.slice(1))), pointer);
});

function ask(gateway: KeyedGateway, name: string, body?: JsonObject): Promise<Response> {
  const [method = "", path = ""] = name.split(" ");
  return fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.keys.good}`, "anthropic-version": "2023-06-01" },
    ...(body !== undefined && { body: JSON.stringify({ model: "sluice/echo", ...body }) }),
  });
}

const HELLO: JsonObject = { role: "user", content: "Hello" };
const CALL: JsonObject = { role: "user", content: "call:f {}" };

Deno.test("responses have the described schemas", async () => {
  await using gateway = startKeyed();
  const cases: [name: string, schema: z.ZodType, body?: JsonObject][] = [
    ["GET /healthz", schemas.healthSchema],
    ["GET /readyz", schemas.healthSchema],
    ["GET /anthropic/api/hello", schemas.healthSchema],
    ["GET /openapi.json", schemas.describedSchema],
    ["GET /v1/models", schemas.compatibleListSchema],
    ["GET /v1/models/sluice", schemas.compatibleListSchema],
    ["GET /v1/models/sluice%2Fecho", schemas.compatibleModelSchema],
    ["GET /v1/models/sluice/echo", schemas.compatibleModelSchema],
    ["GET /anthropic/v1/models", schemas.nativeListSchema],
    ["GET /anthropic/v1/models/sluice", schemas.nativeListSchema],
    ["GET /anthropic/v1/models/sluice/echo", schemas.nativeModelSchema],
    ["POST /v1/chat/completions", schemas.chatReplySchema, { messages: [HELLO] }],
    ["POST /v1/chat/completions", schemas.chatReplySchema, { messages: [HELLO], max_tokens: 1 }],
    ["POST /v1/chat/completions", schemas.chatReplySchema, {
      messages: [CALL],
      tools: [{ type: "function", function: { name: "f" } }],
    }],
    ["POST /v1/chat/completions", schemas.chatReplySchema, { messages: [CALL], functions: [{ name: "f" }] }],
    ["POST /v1/responses", schemas.responseSchema, { input: "Hello" }],
    ["POST /v1/responses", schemas.responseSchema, { input: "Hello there", max_output_tokens: 1 }],
    ["POST /v1/responses", schemas.responseSchema, {
      input: "call:f {}",
      tools: [{ type: "function", name: "f" }],
      reasoning: { effort: "low", summary: "auto" },
    }],
    ["POST /anthropic/v1/messages", schemas.messageSchema, { max_tokens: 9, messages: [HELLO] }],
    ["POST /anthropic/v1/messages", schemas.messageSchema, { max_tokens: 0, messages: [HELLO] }],
    ["POST /anthropic/v1/messages", schemas.messageSchema, {
      max_tokens: 2000,
      messages: [CALL],
      tools: [{ name: "f", input_schema: { type: "object" } }],
      thinking: { type: "enabled", budget_tokens: 1024 },
    }],
    ["POST /anthropic/v1/messages/count_tokens", schemas.countReplySchema, { messages: [HELLO] }],
  ];
  for (const [name, schema, body] of cases) {
    const response = await ask(gateway, name, body);
    const reply = await response.json();
    assertEquals(response.status, 200, `${name} ${JSON.stringify(body)}: ${JSON.stringify(reply)}`);
    const { error } = schema.safeParse(reply);
    assertEquals(error?.issues, undefined, `${name} ${JSON.stringify(body)}`);
  }
});

Deno.test("errors have the described schemas and statuses", async () => {
  await using gateway = startKeyed();
  const cases: [name: string, status: number, body?: JsonObject][] = [
    ["GET /v1/models/nobody", 404],
    ["GET /v1/models/%zz", 400],
    ["GET /anthropic/v1/models/nobody/nothing", 404],
    ["POST /v1/chat/completions", 400, {}],
    ["POST /v1/responses", 404, { model: "a/b", input: "Hello" }],
    ["POST /anthropic/v1/messages", 400, { messages: [HELLO] }],
    ["POST /anthropic/v1/messages/count_tokens", 404, { model: "a/b", messages: [HELLO] }],
  ];
  for (const [name, status, body] of cases) {
    const response = await ask(gateway, name, body);
    const schema = name.includes(" /anthropic/") ? schemas.anthropicErrorSchema : schemas.openaiErrorSchema;
    const { error } = schema.safeParse(await response.json());
    assertEquals([response.status, error?.issues], [status, undefined], name);
    const route = name.replace(
      /models\/.*/,
      name.endsWith("/nothing") ? "models/[provider]/[model_id]" : "models/[provider]",
    );
    const described = Object.keys(operations().get(route)?.responses as JsonObject);
    assert(described.includes(String(status)), `${route} does not describe ${status}`);
  }
});

Deno.test("images are described by their upstreams, and with the configured default quality", async () => {
  const names = ["POST /v1/images/generations", "POST /v1/images/edits"];
  const needed = (document: JsonObject) =>
    names.map((name) => {
      const path = (document.paths as JsonObject)[name.replace("POST ", "")];
      const { requestBody } = (path as JsonObject).post as { requestBody: { content: JsonObject } };
      const [content] = Object.values(requestBody.content) as { schema: { required: string[] } }[];
      return content?.schema.required.includes("quality");
    });
  for (const name of names) {
    const { responses } = operations().get(name) as { responses: JsonObject };
    for (const status of ["502", "503", "504"]) assert(Object.hasOwn(responses, status), `${name} ${status}`);
  }
  for (const [images, expected] of [[{}, true], [{ default_quality: "high" }, false]] as const) {
    await using gateway = startKeyed({ images });
    const document = await (await ask(gateway, "GET /openapi.json")).json();
    assertEquals(needed(document), [expected, expected]);
    const requested = { model: "sluice/canvas", prompt: "A cat", size: "1024x1024", n: 0 };
    const { error } = await (await ask(gateway, "POST /v1/images/generations", requested)).json();
    assertEquals(error.param, "n");
  }
});

Deno.test("an undocumented response is detected by its status, type and members", async () => {
  const answers: [answer: () => Response, problem: RegExp][] = [
    [() => Response.json({ status: "ok" }), /^$/],
    [() => Response.json({ status: 1 }), /GET \/healthz 200: status: Invalid input/],
    [() => Response.json({ status: "ok", more: 1 }), /GET \/healthz 200: .*more/],
    [() => Response.json({ status: "ok" }, { status: 418 }), /GET \/healthz 418: the status is not described/],
    [() => new Response("ok"), /GET \/healthz 200: the type "text\/plain" is not described/],
    [() => new Response("{", { headers: { "content-type": "application/json" } }), /the answer is no JSON/],
  ];
  await using gateway = startKeyed();
  for (const [answer, problem] of answers) {
    const others = routes.map((route) => route.path === "/healthz" ? { ...route, handlers: { GET: answer } } : route);
    const { app, assertDescribed } = createDescribedApp({ routes: others, gateway: () => gateway.gateway });
    const response = await app(new Request("http://localhost/healthz", { headers: { host: "localhost" } }));
    await response.text();
    let message = "";
    try {
      assertDescribed();
    } catch (error) {
      message = messageOf(error);
    }
    assertMatch(message, problem);
  }
});

import { assert, assertEquals, assertMatch } from "@std/assert";
import { ACCESS, isOperatorCredential } from "../../lib/access/access_table.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import { openapiDocument } from "../../lib/openapi/document.ts";
import { messageOf } from "../../lib/errors.ts";
import { routes } from "../../routes/manifest.ts";
import { createDescribedApp } from "../support/described_answers.ts";
import { type KeyedGateway, startKeyed } from "../support/keyed_gateway.ts";

const DOCUMENT = openapiDocument(true);

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

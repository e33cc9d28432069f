import { assert, assertEquals } from "@std/assert";
import type { z } from "zod";
import { ACCESS } from "../../lib/access/table.ts";
import { adminDocument } from "../../lib/admin/document.ts";
import * as schemas from "../../lib/admin/schemas.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json.ts";
import { describedSchema, openaiErrorSchema } from "../../lib/openapi/schemas.ts";
import type { WholeGateway } from "../whole_gateway.ts";
import { ask, startAdmin } from "./ask.ts";

const PATHS = adminDocument().paths as Record<string, JsonObject>;

/** Operations by `METHOD path`, as the access table names them. */
const OPERATIONS = new Map<string, JsonObject>(
  Object.entries(PATHS).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      [
        `${method.toUpperCase()} ${path.replaceAll("{", "[").replaceAll("}", "]")}`,
        operation as JsonObject,
      ] as const
    )
  ),
);

function statusesOf(name: string): string[] {
  return Object.keys(OPERATIONS.get(name)?.responses as JsonObject);
}

Deno.test("the description has every row of the admin side and nothing else, all behind the admin key", () => {
  const rows = Object.entries(ACCESS).filter(([, { credential }]) => credential === "admin").map(([name]) => name);
  assertEquals([...OPERATIONS.keys()].sort(), rows.sort());
  for (const [name, operation] of OPERATIONS) {
    assertEquals(operation.security, [{ bearer: [] }], name);
    assert(statusesOf(name).includes("401") && !statusesOf(name).includes("403"), name);
    const inPath = (operation.parameters as JsonObject[]).filter((parameter) => parameter.in === "path");
    assertEquals(inPath.map((parameter) => `[${parameter.name}]`), name.match(/\[\w+\]/g) ?? [], name);
  }
  const rotation = OPERATIONS.get("POST /admin/v1/keys/[key]/rotate")?.requestBody;
  assert(isObject(rotation) && rotation.required === false);
  const query = (OPERATIONS.get("GET /admin/v1/usage")?.parameters as JsonObject[]).map(({ name }) => name);
  assertEquals(query, ["since", "until", "by", "upstream"]);
});

async function chat({ origin, keys }: WholeGateway, model: string): Promise<string> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${keys.good}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.body?.cancel();
  return response.headers.get("x-request-id") ?? "";
}

Deno.test("what the admin side answers has the shapes and the statuses that are described", async () => {
  await using gateway = startAdmin();
  const [good, failed] = [await chat(gateway, "sluice/echo"), await chat(gateway, "nobody/nothing")];
  const error = openaiErrorSchema;
  const rules = { models: ["*"], limits: { concurrency: 1 }, budget: { usd: "1" } };
  const cases: [name: string, path: string, schema: z.ZodType, status: number, body?: Json][] = [
    ["GET /admin/v1/openapi.json", "/openapi.json", describedSchema, 200],
    ["GET /admin/v1/keys", "/keys", schemas.keyListSchema, 200],
    ["POST /admin/v1/keys", "/keys", schemas.shownKeySchema, 201, { name: "a", rules, expires_at: "1d" }],
    ["POST /admin/v1/keys", "/keys", error, 400, { name: "a" }],
    ["GET /admin/v1/keys/[key]", "/keys/a", schemas.keySchema, 200],
    ["GET /admin/v1/keys/[key]", "/keys/revoked", schemas.keySchema, 200],
    ["GET /admin/v1/keys/[key]", "/keys/b", error, 404],
    ["PATCH /admin/v1/keys/[key]", "/keys/a", schemas.keySchema, 200, { disabled: true }],
    ["PATCH /admin/v1/keys/[key]", "/keys/b", error, 404, { disabled: true }],
    ["POST /admin/v1/keys/[key]/rotate", "/keys/a/rotate", schemas.shownKeySchema, 200],
    ["POST /admin/v1/keys/[key]/rotate", "/keys/b/rotate", error, 404],
    ["DELETE /admin/v1/keys/[key]", "/keys/a", schemas.keySchema, 200],
    ["DELETE /admin/v1/keys/[key]", "/keys/a", error, 400],
    ["GET /admin/v1/usage", "/usage", schemas.usageSchema, 200],
    ["GET /admin/v1/usage", "/usage?by=day", schemas.usageSchema, 200],
    ["GET /admin/v1/usage", "/usage?by=upstream", schemas.usageSchema, 200],
    ["GET /admin/v1/usage", "/usage?by=hour", error, 400],
    ["GET /admin/v1/usage", "/usage?by=upstream&upstream=nobody", error, 400],
    ["GET /admin/v1/usage/[request_id]", `/usage/${good}`, schemas.explanationSchema, 200],
    ["GET /admin/v1/usage/[request_id]", `/usage/${failed}`, schemas.explanationSchema, 200],
    ["GET /admin/v1/usage/[request_id]", "/usage/nobody", error, 404],
    ["GET /admin/v1/health", "/health", schemas.gatewayHealthSchema, 200],
    ["GET /admin/v1/config", "/config", schemas.configStateSchema, 200],
    ["POST /admin/v1/reload", "/reload", error, 400],
    ["POST /admin/v1/audit", "/audit", schemas.auditSchema, 200],
  ];
  for (const [name, path, schema, status, body] of cases) {
    const answer = await ask(gateway, `${name.split(" ")[0]} ${path}`, body);
    assertEquals(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`);
    assertEquals(schema.safeParse(answer.body).error?.issues, undefined, path);
    assert(statusesOf(name).includes(String(status)), `${name} does not describe ${status}`);
  }
  assertEquals(new Set(cases.map(([name]) => name)).size, OPERATIONS.size);
});

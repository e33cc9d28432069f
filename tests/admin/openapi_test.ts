import { assert, assertEquals } from "@std/assert";
import { ACCESS } from "../../lib/access/access_table.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import type { KeyedGateway } from "../support/keyed_gateway.ts";
import { startAdmin } from "./admin_client.ts";
import { askDescribed, OPERATIONS } from "./openapi_validator.ts";
import { postChat } from "../support/post_chat.ts";

function statusesOf(name: string): string[] {
  return Object.keys(OPERATIONS.get(name)?.responses as JsonObject);
}

Deno.test("the admin description lists exactly the admin routes, all with the admin key", () => {
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
  assertEquals(query, ["since", "until", "period", "by", "key", "group", "model", "user", "tag", "upstream"]);
});

async function chat({ url, keys }: KeyedGateway, model: string): Promise<string> {
  const response = await postChat(url, keys.good, { model });
  await response.body?.cancel();
  return response.headers.get("x-request-id") ?? "";
}

Deno.test("admin responses have the described schemas and statuses", async () => {
  await using gateway = startAdmin();
  const [good, failed] = [await chat(gateway, "sluice/echo"), await chat(gateway, "nobody/nothing")];
  const rules = { models: ["*"], limits: { concurrency: 1 }, budget: { usd: "1" } };
  const cases: [what: string, status: number, body?: Json][] = [
    ["GET /openapi.json", 200],
    ["GET /keys", 200],
    ["POST /keys", 201, { name: "a", rules, expires_at: "1d" }],
    ["POST /keys", 400, { name: "a" }],
    ["GET /keys/a", 200],
    ["GET /keys/revoked", 200],
    ["GET /keys/b", 404],
    ["PATCH /keys/a", 200, { disabled: true }],
    ["PATCH /keys/b", 404, { disabled: true }],
    ["POST /keys/a/rotate", 200],
    ["POST /keys/b/rotate", 404],
    ["DELETE /keys/a", 200],
    ["DELETE /keys/a", 400],
    ["GET /budgets", 200],
    ["GET /budgets?group=default&scope=user", 200],
    ["GET /budgets?user=anna", 400],
    ["GET /changes", 200],
    ["GET /changes?limit=x", 400],
    ["GET /requests", 200],
    ["GET /requests?failed=true&sort=cost", 200],
    ["GET /requests?sort=size", 400],
    ["GET /requests/stream?sort=cost", 400],
    ["GET /usage", 200],
    ["GET /usage?by=day", 200],
    ["GET /usage?by=group,key&period=today", 200],
    ["GET /usage?by=tag,user&tag=a", 200],
    ["GET /usage?by=upstream", 200],
    ["GET /usage?by=hour", 400],
    ["GET /usage?by=upstream&upstream=nobody", 400],
    [`GET /usage/${good}`, 200],
    [`GET /usage/${failed}`, 200],
    ["GET /usage/nobody", 404],
    ["GET /health", 200],
    ["GET /config", 200],
    ["POST /reload", 400],
    ["POST /audit", 200],
  ];
  const names = new Set<string>();
  for (const [what, status, body] of cases) {
    names.add((await askDescribed(gateway, what, { status, ...(body !== undefined && { body }) })).name);
  }
  assertEquals(names.size, OPERATIONS.size);
});

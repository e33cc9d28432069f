/** Validates responses against the description of the admin API. */
import { assert, assertEquals } from "@std/assert";
import type { z } from "zod";
import { publicKeySchema } from "../../lib/access/public_key.ts";
import { adminDocument } from "../../lib/admin/openapi.ts";
import { explanationSchema, requestPageSchema } from "../../lib/billing/reports/request_schemas.ts";
import * as reports from "../../lib/billing/reports/schemas.ts";
import * as schemas from "../../lib/admin/schemas.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { describedSchema, openaiErrorSchema } from "../../lib/openapi/schemas.ts";
import type { KeyedGateway } from "../support/keyed_gateway.ts";
import { ask } from "./admin_client.ts";

/** Operations by `METHOD path`, as the access table names them. */
export const OPERATIONS: ReadonlyMap<string, JsonObject> = new Map(
  Object.entries(adminDocument().paths as Record<string, JsonObject>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      [
        `${method.toUpperCase()} ${path.replaceAll("{", "[").replaceAll("}", "]")}`,
        operation as JsonObject,
      ] as const
    )
  ),
);

/** The successful answer of each operation. */
const REPLIES: Readonly<Record<string, z.ZodType>> = {
  "GET /admin/v1/openapi.json": describedSchema,
  "GET /admin/v1/keys": schemas.keyListSchema,
  "POST /admin/v1/keys": schemas.shownKeySchema,
  "GET /admin/v1/keys/[key]": schemas.keyWithBudgetSchema,
  "PATCH /admin/v1/keys/[key]": publicKeySchema,
  "DELETE /admin/v1/keys/[key]": publicKeySchema,
  "POST /admin/v1/keys/[key]/rotate": schemas.shownKeySchema,
  "GET /admin/v1/budgets": reports.budgetListSchema,
  "GET /admin/v1/requests": requestPageSchema,
  "GET /admin/v1/usage": reports.usageSchema,
  "GET /admin/v1/usage/[request_id]": explanationSchema,
  "GET /admin/v1/health": schemas.gatewayHealthSchema,
  "GET /admin/v1/config": schemas.configStateSchema,
  "POST /admin/v1/reload": schemas.reloadSchema,
  "POST /admin/v1/audit": reports.auditSchema,
};

/** A request, and its expected status. */
export interface Question {
  status: number;
  body?: Json;
  headers?: Record<string, string>;
}

/** Sends a request as `ask()` does, and validates the response. Returns the operation, too. */
export async function askDescribed(
  gateway: Pick<KeyedGateway, "adminUrl">,
  what: string,
  { status, body, headers }: Question,
): Promise<{ name: string; body: JsonObject }> {
  const name = nameOf(what);
  const answer = await ask(gateway, what, body, headers);
  assertEquals(answer.status, status, `${what}: ${JSON.stringify(answer.body)}`);
  const described = OPERATIONS.get(name)?.responses as JsonObject;
  assert(Object.hasOwn(described, String(status)), `${name} does not describe ${status}`);
  const schema = status < 300 ? REPLIES[name] : openaiErrorSchema;
  assertEquals(schema?.safeParse(answer.body).error?.issues, undefined, `${what}: ${JSON.stringify(answer.body)}`);
  return { name, body: answer.body };
}

/** `GET /keys/good` is `GET /admin/v1/keys/[key]`. */
function nameOf(what: string): string {
  const requested = what.replace(" ", " /admin/v1").replace(/\?.*/, "");
  const named = [...OPERATIONS.keys()].filter((name) =>
    new RegExp(`^${name.replaceAll(/\[\w+\]/g, "[^/]+")}$`).test(requested)
  );
  const found = named.find((name) => name === requested) ?? named[0];
  assert(found !== undefined, `Nothing describes ${what}`);
  return found;
}

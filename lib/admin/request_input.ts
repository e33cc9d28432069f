/** Reads and validates bodies and queries of admin requests. */
import { z } from "zod";
import { pathText } from "../config/problems.ts";
import { PrunedEntriesError, ReportQueryError } from "../billing/reports/report_errors.ts";
import { GatewayError } from "../errors.ts";
import { EMPTY_BODY } from "../server/parse_body.ts";
import { readTarget } from "../server/route_matcher.ts";
import type { RouteContext } from "../server/router.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import { checkBody } from "../protocols/fields.ts";

/**
 * Reads the JSON body and checks it against a schema.
 * @throws {GatewayError} `invalid`, with the wrong member; the errors of `readJson()`
 */
export async function readBody<T extends z.ZodType>(schema: T, context: RouteContext): Promise<z.output<T>> {
  const { value } = await context.readJson();
  return check(schema, value);
}

/** Reads the body as `readBody` does, and an empty one as `{}`. */
export async function readOptionalBody<T extends z.ZodType>(schema: T, context: RouteContext): Promise<z.output<T>> {
  try {
    return await readBody(schema, context);
  } catch (error) {
    if (error instanceof GatewayError && error.message === EMPTY_BODY) return check(schema, {});
    throw error;
  }
}

/**
 * Reads the parameters of the query.
 * @throws {GatewayError} `invalid` for a name that is not in `names`, or that is repeated
 */
export function readQuery<Name extends string>(
  request: Request,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const values: Partial<Record<Name, string>> = {};
  for (const [key, value] of new URLSearchParams(readTarget(request).query)) {
    const name = names.find((name) => name === key);
    if (name === undefined) throw unknownMember(key, names);
    if (values[name] !== undefined) {
      throw new GatewayError("invalid", `Expected one value of "${name}", found several`, { param: name });
    }
    values[name] = value;
  }
  return values;
}

/**
 * Runs a report whose parameters come from a query.
 * @param period name of the parameter with the period or its start
 * @throws {GatewayError} `invalid`, with the wrong parameter
 */
export async function runReport<Report>(run: () => Promise<Report>, period = "since"): Promise<Report> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ReportQueryError || error instanceof PrunedEntriesError)) throw error;
    const param = error instanceof ReportQueryError ? error.param : period;
    throw new GatewayError("invalid", error.message, { param, cause: error });
  }
}

function check<T extends z.ZodType>(schema: T, value: JsonObject): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue?.code === "unrecognized_keys") {
    throw unknownMember(pathText([...issue.path, ...issue.keys.slice(0, 1)]), membersAt(schema, issue.path));
  }
  checkBody(schema, value);
  throw new TypeError("Cannot check a body: the schema gave two answers");
}

function unknownMember(name: string, known: readonly string[]): GatewayError {
  const list = known.length === 0 ? "nothing else" : known.join(", ");
  return new GatewayError("invalid", `Unknown parameter "${name}"; known here: ${list}`, { param: name });
}

/** Returns the names of the members that the object at a path in the body may have. */
function membersAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let current: unknown = z.toJSONSchema(schema, { io: "input" });
  for (const part of path) {
    const properties: unknown = isObject(current) ? current.properties : undefined;
    current = isObject(properties) ? properties[String(part)] : undefined;
  }
  return isObject(current) && isObject(current.properties) ? Object.keys(current.properties) : [];
}

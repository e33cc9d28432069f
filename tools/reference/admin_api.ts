/** Renders docs/reference/admin-api.md from the OpenAPI document of the admin API. */
import type { z } from "zod";
import { adminDocument } from "../../lib/admin/openapi.ts";
import { code, pageHead, table } from "./markdown.ts";

/** A schema of a body. */
type Schema = z.core.JSONSchema.BaseSchema;

/** One operation of the document, as far as the page shows it. */
interface Operation {
  summary: string;
  parameters: readonly { name: string; in: string; description?: string }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
}

const INTRO = `
The admin API is under \`/admin/v1\` if the configuration has [\`admin\`](configuration.md#admin). Each request needs
\`Authorization: Bearer ADMIN_KEY\`. The viewer key may send \`GET\` requests. \`GET /admin/v1/openapi.json\` answers the
OpenAPI 3.1 description that this page is made from; it has the whole schemas. Errors have OpenAI's shape; see
[error codes](error-codes.md).
`;

/** Renders the page. */
export function adminApiPage(): string {
  const { paths } = adminDocument() as unknown as { paths: Record<string, Record<string, Operation>> };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation }))
  );
  return [
    pageHead("Admin API", INTRO),
    "## Operations\n",
    table(["Operation", "Description"], operations.map(({ name, operation }) => [code(name), operation.summary])),
    ...operations.map(({ name, operation }) => section(name, operation)),
  ].join("\n");
}

/** Renders the section of an operation. */
function section(name: string, { summary, parameters, requestBody, responses }: Operation): string {
  const queryParameters = parameters.filter((parameter) => parameter.in === "query");
  const [[status = "", success] = []] = Object.entries(responses).filter(([status]) => status < "300");
  const errors = Object.keys(responses).filter((status) => status >= "300");
  const parts = [`## ${code(name)}\n\n${summary}.\n`];
  if (queryParameters.length > 0) {
    parts.push(
      table(["Query", "Meaning"], queryParameters.map(({ name, description = "" }) => [code(name), `${description}.`])),
    );
  }
  for (const { schema } of Object.values(requestBody?.content ?? {})) {
    parts.push(`Body${requestBody?.required === true ? "" : ", which may be left out"}:\n`, bodyTable(schema));
  }
  const replies = Object.entries(success?.content ?? {});
  const kinds = replies.map(([kind]) => code(kind)).join(" or ");
  parts.push(`Answer: ${status}${kinds === "" ? "" : `, ${kinds}`}. Errors: ${errors.join(", ")}.\n`);
  for (const [kind, { schema }] of replies) {
    if (kind === "application/json" && Object.keys(schema.properties ?? {}).length > 0) parts.push(answerTable(schema));
  }
  return parts.join("\n");
}

/** Renders the table of the members of a request body. */
function bodyTable({ required = [], properties = {} }: Schema): string {
  const rows = Object.entries(properties).map(([name, member]) => {
    const { description = "", default: value } = asSchema(member);
    const byDefault = value === undefined ? "" : code(JSON.stringify(value));
    return [code(name), typeOf(asSchema(member)), required.includes(name) ? "required" : byDefault, description];
  });
  return table(["Member", "Type", "Default", "Meaning"], rows);
}

/** Renders the table of the members of an answer. */
function answerTable({ properties = {} }: Schema): string {
  const rows = Object.entries(properties).map((
    [name, member],
  ) => [code(name), typeOf(asSchema(member)), asSchema(member).description ?? ""]);
  return table(["Member", "Type", "Meaning"], rows);
}

/** Returns a type in words. */
function typeOf({ type, enum: values, const: value, anyOf, items, properties }: Schema): string {
  if (value !== undefined) return code(JSON.stringify(value));
  if (values !== undefined) return values.map((each) => code(JSON.stringify(each))).join(", ");
  if (anyOf !== undefined) return [...new Set(anyOf.map((option) => typeOf(asSchema(option))))].join(" or ");
  if (Array.isArray(type)) return type.join(" or ");
  if (type === "array" && items !== undefined && !Array.isArray(items)) return `list: ${typeOf(asSchema(items))}`;
  if (properties !== undefined) return `object with ${Object.keys(properties).map(code).join(", ")}`;
  return typeof type === "string" ? type : "any";
}

function asSchema(schema: boolean | Schema): Schema {
  return typeof schema === "boolean" ? {} : schema;
}

/** Describes operations in OpenAPI's format. */
import { z } from "zod";
import { ACCESS } from "../access/access_table.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import { healthSchema } from "./schemas.ts";

/** A method of a path. */
export interface Operation {
  summary: string;
  /** Descriptions of the query parameters by name. None is required. */
  query?: Readonly<Record<string, string>>;
  /** Schema of the request body; absent: it has none. */
  body?: z.ZodType;
  /** True if the body may be left out; absent: no. */
  bodyIsOptional?: boolean;
  /** Files of a form, in addition to the fields of `body`; a list needs at least one file. Absent: the body is JSON. */
  files?: Readonly<Record<string, "one" | "list">>;
  /** Schema of the response body; absent: it has none, or is always a stream. */
  reply?: z.ZodType;
  /** Status of a successful response; absent: 200. */
  status?: 101 | 201;
  /** True if the response can be a stream of server-sent events; `always`: it always is; absent: it cannot. */
  streams?: true | "always";
  /** Further statuses, in addition to those that depend on credential and body. */
  others?: readonly number[];
}

/** Statuses of any operation: the head of the request is malformed, or requests a WebSocket. */
const COMMON_STATUSES = [400, 426];
/** Further statuses of operations that require a key. The viewer key gets 403 for those that may change something. */
const KEY_STATUSES = [401, 403, 429, 500, 503];
/** Further statuses of operations with a body. */
const BODY_STATUSES = [404, 408, 413, 415];

/**
 * Returns the member `paths` of a document.
 * @param operations operations by method and path, such as `GET /v1/models`
 */
export function describePaths(operations: Readonly<Record<string, Operation>>): Record<string, JsonObject> {
  const paths: Record<string, JsonObject> = {};
  for (const [key, operation] of Object.entries(operations)) {
    const [method = "", path = ""] = key.split(" ");
    const name = path.replaceAll("[", "{").replaceAll("]", "}");
    paths[name] = { ...paths[name], [method.toLowerCase()]: describe(path, key, operation) };
  }
  return paths;
}

function describe(path: string, key: string, operation: Operation): JsonObject {
  const { summary, query = {}, body, files, reply, streams, others = [], status = 200 } = operation;
  const credential = ACCESS[key]?.credential ?? "none";
  const isForViewers = credential === "admin" && key.startsWith("GET ");
  return {
    summary,
    ...(credential !== "none" && {
      security: [
        ...(credential === "api_key" ? [{ api_key: [] }] : []),
        ...(credential === "google_key" ? [{ google_key: [] }, { google_key_in_query: [] }] : []),
        { bearer: [] },
      ],
    }),
    parameters: [...parameters(path), ...queryParameters(query)],
    ...(body !== undefined && {
      requestBody: {
        required: operation.bodyIsOptional !== true,
        content: files === undefined
          ? { "application/json": { schema: jsonSchema(body) } }
          : { "multipart/form-data": { schema: formSchema(body, files) } },
      },
    }),
    responses: {
      [status]: {
        description: streams === true ? "The answer, as server-sent events with `stream: true`" : "The answer",
        ...((reply !== undefined || streams !== undefined) && {
          content: {
            ...(reply !== undefined && { "application/json": { schema: jsonSchema(reply) } }),
            ...(streams !== undefined && { "text/event-stream": { schema: { type: "string" } } }),
          },
        }),
      },
      ...Object.fromEntries(
        [
          ...COMMON_STATUSES,
          ...(credential === "none" ? [] : KEY_STATUSES.filter((status) => !isForViewers || status !== 403)),
          ...(body === undefined ? [] : BODY_STATUSES),
          ...others,
        ].map((status) => otherReply(path, status)),
      ),
    },
  };
}

/** Returns a status other than success, as clients of the path see it, and its description. */
function otherReply(path: string, status: number): [status: string, reply: JsonObject] {
  if (status === 304) return ["304", { description: "Not modified: the ETag in `If-None-Match` is current" }];
  if (path === "/readyz" && status === 503) {
    return ["503", {
      description: "Not ready",
      content: { "application/json": { schema: jsonSchema(healthSchema) } },
    }];
  }
  const isNative = path.startsWith("/anthropic/");
  const otherName = path.startsWith("/v1beta/") ? "GoogleError" : "OpenaiError";
  const name = isNative ? "AnthropicError" : otherName;
  const schema = { $ref: `#/components/schemas/${name}` };
  return [String(isNative && status === 503 ? 529 : status), {
    description: "An error in the protocol's format",
    content: { "application/json": { schema } },
  }];
}

function parameters(path: string): JsonObject[] {
  const inPath = [...path.matchAll(/\[([a-z_]+)\]/g)].map(([, name = ""]): JsonObject => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  if (!path.startsWith("/anthropic/v1/messages")) return inPath;
  return [...inPath, {
    name: "anthropic-version",
    in: "header",
    required: true,
    schema: { type: "string", enum: ["2023-06-01", "2026-10-21"] },
  }];
}

function queryParameters(query: Readonly<Record<string, string>>): JsonObject[] {
  return Object.entries(query).map(([name, description]) => ({
    name,
    in: "query",
    required: false,
    description,
    schema: { type: "string" },
  }));
}

function formSchema(fields: z.ZodType, files: NonNullable<Operation["files"]>): JsonObject {
  const schema = jsonSchema(fields);
  const file: JsonObject = { type: "string", format: "binary", description: "PNG, JPEG or WebP" };
  const names = Object.keys(files);
  const lists = names.filter((name) => files[name] === "list");
  return {
    ...schema,
    properties: {
      ...(isObject(schema.properties) && schema.properties),
      ...Object.fromEntries(
        names.map((name) => [name, files[name] === "list" ? { type: "array", items: file, minItems: 1 } : file]),
      ),
    },
    required: [...(Array.isArray(schema.required) ? schema.required : []), ...lists],
  };
}

/** Returns a schema as JSON Schema for an OpenAPI document, which has no member `$schema`. */
export function jsonSchema(schema: z.ZodType): JsonObject {
  const { $schema: _, ...members } = z.toJSONSchema(schema, { io: "input" }) as JsonObject;
  return members;
}

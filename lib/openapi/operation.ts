/** One operation of an API description. */
import { z } from "zod";
import { ACCESS } from "../access/access_table.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import { healthSchema, openaiErrorSchema } from "./schemas.ts";

/** One method of one path. */
export interface Operation {
  summary: string;
  /** Descriptions of the query parameters by name. None is required. */
  query?: Readonly<Record<string, string>>;
  /** Shape of the request body, where there is one. */
  body?: z.ZodType;
  /** The body may be left out. */
  bodyIsOptional?: boolean;
  /** The body is a form with these files beside the fields of `body`; those of a list are required. */
  files?: Readonly<Record<string, "one" | "list">>;
  /** Absent: the answer has no body. */
  reply?: z.ZodType;
  /** Status of the answer, if not 200. */
  status?: 101 | 201;
  /** The answer may be a stream of server-sent events instead; `always`: it always is. */
  streams?: true | "always";
  /** Further statuses, beside those of its credential and its body. */
  others?: readonly number[];
}

/** Statuses that any operation may answer with: the head of a request is wrong, or asks for a WebSocket. */
const ALWAYS = [400, 426];
/** Statuses an operation with a key may answer with, too. */
const WITH_KEY = [401, 403, 429, 500, 503];
/** Statuses an operation with a body may answer with, too. */
const WITH_BODY = [404, 408, 413, 415];

/** The member `paths` of a document, for operations by `METHOD path`. */
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
          ...ALWAYS,
          ...(credential === "none" ? [] : WITH_KEY.filter((status) => credential !== "admin" || status !== 403)),
          ...(body === undefined ? [] : WITH_BODY),
          ...others,
        ].map((status) => otherReply(path, status)),
      ),
    },
  };
}

/** A status other than 200, as clients of the path see it, and its description. */
function otherReply(path: string, status: number): [status: string, reply: JsonObject] {
  if (status === 304) return ["304", { description: "Not modified: the ETag in `If-None-Match` is current" }];
  if (path === "/readyz" && status === 503) {
    // A process that ends takes no request any more: then it is an error.
    return ["503", {
      description: "Not ready",
      content: { "application/json": { schema: jsonSchema(z.union([healthSchema, openaiErrorSchema])) } },
    }];
  }
  const isNative = path.startsWith("/anthropic/");
  const name = isNative ? "AnthropicError" : path.startsWith("/v1beta/") ? "GoogleError" : "OpenaiError";
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

/** A schema as OpenAPI writes it. */
export function jsonSchema(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" }) as JsonObject;
  return rest;
}

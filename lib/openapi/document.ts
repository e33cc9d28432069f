/** The API description, made of the schemas that check requests: what it says is what is enforced. */
import { z } from "zod";
import { ACCESS } from "../access/table.ts";
import { editSchema } from "../images/edit.ts";
import { generationSchema } from "../images/generation.ts";
import { isObject, type JsonObject } from "../json.ts";
import { chat } from "../protocols/chat/mod.ts";
import { countTokensSchema, messages } from "../protocols/messages/mod.ts";
import { responses } from "../protocols/responses/mod.ts";
import {
  anthropicErrorSchema,
  chatReplySchema,
  compatibleListSchema,
  compatibleModelSchema,
  countReplySchema,
  describedSchema,
  healthSchema,
  imageResultSchema,
  messageSchema,
  nativeListSchema,
  nativeModelSchema,
  openaiErrorSchema,
  responseSchema,
} from "./schemas.ts";

interface Operation {
  summary: string;
  /** Shape of the request body, where there is one. */
  body?: z.ZodType;
  /** The body is a form with these files beside the fields of `body`; those of a list are required. */
  files?: Readonly<Record<string, "one" | "list">>;
  reply: z.ZodType;
  /** The answer may be a stream of server-sent events instead. */
  streams?: boolean;
  /** Statuses it may answer with beside those that its credential and its body bring. */
  others?: readonly number[];
}

const FORMATS = "An id whose slash is escaped (`vendor%2Fname`) returns that model.";

/** What only an operation that asks a model may answer with. */
const UPSTREAM = [502, 504];

/** Every operation by `METHOD path`; a test holds this against the access table. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /healthz": { summary: "Is the process alive", reply: healthSchema },
  "GET /readyz": { summary: "Can the gateway answer requests", reply: healthSchema, others: [503] },
  "GET /openapi.json": { summary: "This description", reply: describedSchema, others: [304] },
  "GET /v1/models": { summary: "List models", reply: compatibleListSchema, others: [304] },
  "GET /v1/models/[provider]": {
    summary: `List the models of one vendor. ${FORMATS}`,
    reply: z.union([compatibleListSchema, compatibleModelSchema]),
    others: [304, 404],
  },
  "GET /v1/models/[provider]/[model_id]": {
    summary: "Get one model",
    reply: compatibleModelSchema,
    others: [304, 404],
  },
  "POST /v1/chat/completions": {
    summary: "Create a chat completion",
    body: chat.schema,
    reply: chatReplySchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /v1/responses": {
    summary: "Create a response",
    body: responses.schema,
    reply: responseSchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /v1/images/generations": {
    summary: "Make pictures from a description",
    body: generationSchema,
    reply: imageResultSchema,
    streams: true,
  },
  "POST /v1/images/edits": {
    summary: "Edit pictures; `image` may be sent up to 16 times, also as `image[]`",
    body: editSchema,
    files: { image: "list", mask: "one" },
    reply: imageResultSchema,
    streams: true,
  },
  "GET /anthropic/api/hello": { summary: "Is anybody there", reply: healthSchema },
  "GET /anthropic/v1/models": {
    summary: "List language models, native format",
    reply: nativeListSchema,
    others: [304],
  },
  "GET /anthropic/v1/models/[provider]": {
    summary: `List the language models of one vendor, native format. ${FORMATS}`,
    reply: z.union([nativeListSchema, nativeModelSchema]),
    others: [304, 404],
  },
  "GET /anthropic/v1/models/[provider]/[model_id]": {
    summary: "Get one language model, native format",
    reply: nativeModelSchema,
    others: [304, 404],
  },
  "POST /anthropic/v1/messages": {
    summary: "Create a message",
    body: messages.schema,
    reply: messageSchema,
    streams: true,
    others: UPSTREAM,
  },
  "POST /anthropic/v1/messages/count_tokens": {
    summary: "Count the tokens of a message request",
    body: countTokensSchema,
    reply: countReplySchema,
  },
};

/** Statuses an operation with a key may answer with. */
const WITH_KEY = [400, 401, 403, 500, 503];
/** Statuses an operation with a body may answer with, too. */
const WITH_BODY = [404, 408, 413, 415, 429];

/** The OpenAPI 3.1 document. */
export function openapiDocument(): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const [key, operation] of Object.entries(OPERATIONS)) {
    const [method = "", path = ""] = key.split(" ");
    const name = path.replaceAll("[", "{").replaceAll("]", "}");
    paths[name] = { ...paths[name], [method.toLowerCase()]: describe(path, key, operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: "1",
      description: "Gateway for language and image models: three text protocols, pictures, one catalog.",
    },
    paths,
    components: {
      schemas: { OpenaiError: jsonSchema(openaiErrorSchema), AnthropicError: jsonSchema(anthropicErrorSchema) },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        api_key: { type: "apiKey", in: "header", name: "x-api-key" },
      },
    },
  };
}

function describe(path: string, key: string, operation: Operation): JsonObject {
  const { summary, body, files, reply, streams, others = [] } = operation;
  const credential = ACCESS[key]?.credential ?? "none";
  return {
    summary,
    ...(credential !== "none" && {
      security: credential === "api_key" ? [{ api_key: [] }, { bearer: [] }] : [{ bearer: [] }],
    }),
    parameters: parameters(path),
    ...(body !== undefined && {
      requestBody: {
        required: true,
        content: files === undefined
          ? { "application/json": { schema: jsonSchema(body) } }
          : { "multipart/form-data": { schema: formSchema(body, files) } },
      },
    }),
    responses: {
      "200": {
        description: streams === true ? "The answer; server-sent events with `stream: true`" : "The answer",
        content: {
          "application/json": { schema: jsonSchema(reply) },
          ...(streams === true && { "text/event-stream": { schema: { type: "string" } } }),
        },
      },
      ...Object.fromEntries(
        [
          ...(credential === "none" ? [] : WITH_KEY),
          ...(body === undefined ? [] : WITH_BODY),
          ...others,
        ].map((status) => otherReply(path, status)),
      ),
    },
  };
}

/** A status other than 200, as clients of the path see it, and its description. */
function otherReply(path: string, status: number): [status: string, reply: JsonObject] {
  if (status === 304) return ["304", { description: "What `If-None-Match` names is still right" }];
  if (path === "/readyz") {
    return [String(status), {
      description: "Not now",
      content: { "application/json": { schema: jsonSchema(healthSchema) } },
    }];
  }
  const isNative = path.startsWith("/anthropic/");
  const schema = { $ref: `#/components/schemas/${isNative ? "AnthropicError" : "OpenaiError"}` };
  return [String(isNative && status === 503 ? 529 : status), {
    description: "An error in the shape of the protocol",
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

/** A form: fields and files. */
function formSchema(fields: z.ZodType, files: NonNullable<Operation["files"]>): JsonObject {
  const schema = jsonSchema(fields);
  const file: JsonObject = { type: "string", format: "binary", description: "PNG or JPEG" };
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

function jsonSchema(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" }) as JsonObject;
  return rest;
}

/** Validates every answer of an app against its API description. */
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { createApp } from "../../lib/server/app.ts";
import type { App, AppOptions } from "../../lib/server/exchange.ts";
import { JsonAnswer } from "../../lib/server/json_response.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import { openapiDocument } from "../../lib/openapi/document.ts";

/** An app whose answers are compared with the OpenAPI document. */
export interface DescribedApp {
  app: App;
  /** @throws {AssertionError} if an answer did not match its description */
  assertDescribed(): void;
}

/** Longest answer that is checked, in bytes. Larger ones are images. */
const MAX_BYTES = 4 * 1024 * 1024;

/** An operation of the description. */
interface DescribedOperation {
  name: string;
  path: RegExp;
  responses: JsonObject;
}

const DOCUMENT = openapiDocument(true);

const OPERATIONS: readonly DescribedOperation[] = Object.entries(DOCUMENT.paths as JsonObject).flatMap((
  [path, methods],
) =>
  Object.entries(methods as JsonObject).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    path: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    responses: (operation as JsonObject).responses as JsonObject,
  }))
);

/** Validators by operation, status and type of content; made when they are first needed. */
const validators = new Map<string, z.ZodType>();

/** As `createApp()`, with an eye on the answers to requests of the operations that are described. */
export function createDescribedApp(options: AppOptions): DescribedApp {
  const app = createApp(options);
  const problems = new Set<string>();
  const look = (what: string, schema: Json | undefined, text: string) => {
    const problem = problemOf(what, schema, text);
    if (problem !== undefined) problems.add(problem);
  };
  // The client API does not describe an address that is only the operator's.
  if (options.surface === "admin") return { app, assertDescribed() {} };
  return {
    async app(request, info) {
      const response = await app(request, info);
      // Some request targets do not form a valid URL.
      const written = /^\w+:\/\/[^/?#]*([^?#]*)/.exec(request.url)?.[1] ?? "";
      // Google's header makes these Google's lists of models.
      const isGoogle = request.headers.has("x-goog-api-key");
      const pathname = isGoogle ? written.replace(/^\/v1\/models/, "/v1beta/models") : written;
      const operation = OPERATIONS.find(({ name, path }) =>
        name.startsWith(`${request.method} `) && path.test(pathname)
      );
      // 499: the client has disconnected, so the answer is not read.
      if (operation === undefined || response.status === 499) return response;
      const what = `${operation.name} ${response.status}`;
      const described = operation.responses[String(response.status)];
      if (!isObject(described)) {
        problems.add(`${what}: the status is not described`);
        return response;
      }
      const type = response.headers.get("content-type")?.replace(/;.*/, "");
      if (type === undefined) return response;
      const content = isObject(described.content) ? described.content[type] : undefined;
      if (!isObject(content)) {
        problems.add(`${what}: the type "${type}" is not described`);
        return response;
      }
      if (type !== "application/json") return response;
      return await readAlong(response, (text) => look(what, content.schema, text));
    },
    assertDescribed: () => assertEquals([...problems], []),
  };
}

/** Passes an answer on unchanged, and returns its text if it is not too long. */
async function readAlong(response: Response, look: (text: string) => void): Promise<Response> {
  if (response instanceof JsonAnswer) {
    const bytes = await response.bytes();
    look(new TextDecoder().decode(bytes));
    const { "content-type": _, ...headers } = Object.fromEntries(response.headers);
    return new JsonAnswer(bytes, { status: response.status, headers });
  }
  const reader = response.body?.getReader();
  if (reader === undefined) return response;
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        if (bytes <= MAX_BYTES) look(text + decoder.decode());
        controller.close();
        return;
      }
      bytes += value.length;
      if (bytes <= MAX_BYTES) text += decoder.decode(value, { stream: true });
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
  return new Response(body, response);
}

/** The difference of an answer from its description; `undefined` if there is none. */
function problemOf(what: string, schema: Json | undefined, text: string): string | undefined {
  let validator = validators.get(what);
  if (validator === undefined) validators.set(what, validator = toValidator(schema));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return `${what}: the answer is no JSON`;
  }
  const { error } = validator.safeParse(value);
  if (error === undefined) return undefined;
  const issues = error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  return `${what}: ${issues.join("; ")} in ${text.slice(0, 300)}`;
}

function toValidator(schema: Json | undefined): z.ZodType {
  const name = isObject(schema) && typeof schema.$ref === "string" ? schema.$ref.split("/").at(-1) ?? "" : undefined;
  const components = (DOCUMENT.components as JsonObject).schemas as JsonObject;
  return z.fromJSONSchema((name === undefined ? schema : components[name]) as Parameters<typeof z.fromJSONSchema>[0]);
}

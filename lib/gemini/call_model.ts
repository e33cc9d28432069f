/** Serves Gemini's methods of models: `POST /v1beta/models/{model}:{method}`. */
import { GatewayError } from "../errors.ts";
import { documentSize, isObject, type JsonObject, writeMembersSliced } from "../json/mod.ts";
import { gemini, inCamelCase, readSteps, withoutRepeatedResults } from "../protocols/gemini/mod.ts";
import { arrayFraming } from "../protocols/gemini/array_framing.ts";
import { serve } from "../request/serve.ts";
import { LONG_REQUEST_BYTES, runSlicedNow, yieldToEventLoop } from "../scheduler.ts";
import { readTarget } from "../server/route_matcher.ts";
import type { JsonBody } from "../server/parse_body.ts";
import type { RouteContext } from "../server/router.ts";
import { checkBody } from "../protocols/fields.ts";
import { findModel } from "../request/candidates.ts";
import { countingPermissions, countInput } from "../request/count_tokens.ts";
import { jsonResponse } from "../server/json_response.ts";

/** Gemini's protocol with streams as JSON arrays, which clients get without `alt=sse`, as from Google. */
const geminiArrays = { ...gemini, framing: arrayFraming, keepAlive: "\n" };

/** Calls a method of a model. @throws {GatewayError} as `serve`, and `not_found` for another method */
export async function callModel(request: Request, context: RouteContext): Promise<Response> {
  const { model, method } = readMethod(context.params);
  const stream = method === "streamGenerateContent";
  if (!stream && method !== "generateContent" && method !== "countTokens") throw unknownMethod(method);
  context.record.route += `:${method}`;
  if (method === "countTokens") return await countTokens(request, context, model);
  const codec = stream && !hasEvents(request) ? geminiArrays : gemini;
  return await serve(codec, request, withModel(context, { model, stream }));
}

/** Returns the error for another method. It names the endpoint that makes embeddings of models of every vendor. */
function unknownMethod(method: string): GatewayError {
  const expected = /^(?:batchE|e)mbedContents?$/.test(method)
    ? "use POST /v1/embeddings for embeddings"
    : "expected generateContent, streamGenerateContent or countTokens";
  return new GatewayError("not_found", `Cannot call the method "${method.slice(0, 64)}": ${expected}`);
}

/**
 * Reads the model and the method from the path. A model id may contain slashes and colons; the method follows the last
 * colon.
 */
function readMethod(
  { provider = "", model_id: id }: RouteContext["params"],
): { model: string; method: string } {
  const path = id === undefined ? provider : `${provider}/${id}`;
  const colon = path.lastIndexOf(":");
  return colon < 0 ? { model: path, method: "" } : { model: path.slice(0, colon), method: path.slice(colon + 1) };
}

/** Returns whether the client wants a stream as server-sent events. */
function hasEvents(request: Request): boolean {
  const query = new URLSearchParams(readTarget(request).query);
  return (query.get("alt") ?? query.get("$alt")) === "sse";
}

/**
 * Returns a context whose body has additional members, which are in the URL here. The names of the other members are in
 * camel case, and repeated tool results are removed.
 */
function withModel(context: RouteContext, members: JsonObject): RouteContext {
  return {
    ...context,
    async readJson() {
      const body = await context.readJson();
      const value = withoutRepeatedResults(inCamelCase(body.value));
      if (documentSize(body) > LONG_REQUEST_BYTES) await yieldToEventLoop();
      return new NamedBody(value === body.value ? body : await writeMembersSliced(value), { ...value, ...members });
    },
  };
}

/** A body with additional members in its value, but not in its text. */
class NamedBody implements JsonBody {
  readonly value: JsonObject;
  readonly #body: Omit<JsonBody, "value">;

  constructor(body: Omit<JsonBody, "value">, value: JsonObject) {
    this.value = value;
    this.#body = body;
  }

  get text(): string {
    return this.#body.text;
  }

  get members(): JsonBody["members"] {
    return this.#body.members;
  }

  get utf8(): NonNullable<JsonBody["utf8"]> | undefined {
    return this.#body.utf8;
  }
}

/**
 * Counts system instruction, tools, contents and media in o200k tokens. The body has only the contents, or a complete
 * request as `generateContentRequest`.
 * @throws {GatewayError} as `serve` before admission
 */
async function countTokens(request: Request, context: RouteContext, model: string): Promise<Response> {
  const body = await context.readJson();
  const value = inCamelCase(body.value);
  const { generateContentRequest: fullRequest } = value;
  const counted = { ...isObject(fullRequest) ? fullRequest : value, model, stream: false };
  checkBody(gemini.schema, counted);
  const prompt = await runSlicedNow(readSteps(counted, countingPermissions(context)));
  findModel(model, context);
  return jsonResponse({ totalTokens: await countInput(prompt, { context, body, signal: request.signal }) });
}

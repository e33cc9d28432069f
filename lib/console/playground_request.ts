/** Reads the form of the playground and makes the body of the request from it. */
import type { Protocol } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";

/** Endpoints that the playground sends to, with their paths. */
export const ENDPOINT_PATHS = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/anthropic/v1/messages",
  gemini: "/v1beta/models/{model}:generateContent",
  images: "/v1/images/generations",
  embeddings: "/v1/embeddings",
  rerank: "/v1/rerank",
} as const;

/** An endpoint that the playground sends to. */
export type PlaygroundEndpoint = keyof typeof ENDPOINT_PATHS;

/** Returns the path and body of a request. In Gemini's protocol the path contains the model and whether to stream. */
export function addressOf(
  endpoint: PlaygroundEndpoint,
  { model, stream, ...body }: JsonObject,
): { path: string; body: JsonObject } {
  if (endpoint !== "gemini") {
    const path = ENDPOINT_PATHS[endpoint];
    return { path, body: { ...model !== undefined && { model }, ...body, ...stream !== undefined && { stream } } };
  }
  const id = String(model);
  const slash = id.indexOf("/");
  // Clients do not escape the first slash of an id.
  const name = [id.slice(0, slash), id.slice(slash + 1)].slice(slash < 0 ? 1 : 0).map(encodeURIComponent).join("/");
  const method = stream === true ? "streamGenerateContent?alt=sse" : "generateContent";
  return { path: `/v1beta/models/${name}:${method}`, body };
}

/** The fields of the form with their defaults, all as text. */
export const FIELDS = {
  key: "",
  endpoint: "chat",
  model: "",
  other: "",
  system: "",
  prompt: "",
  documents: "",
  tools: "",
  max_tokens: "1024",
  size: "1024x1024",
  more: "",
};

/** The request that the form describes. */
export interface PlaygroundRequest {
  key: string;
  endpoint: PlaygroundEndpoint;
  models: readonly string[];
  /** The body without its model. */
  body: JsonObject;
}

/** Reads the fields of a form or a query. Missing ones get their defaults. */
export function readFields(values: URLSearchParams): typeof FIELDS {
  return Object.fromEntries(
    Object.entries(FIELDS).map(([name, byDefault]) => [name, values.get(name) ?? byDefault]),
  ) as typeof FIELDS;
}

/** Makes the request from the fields. @throws {GatewayError} `invalid` if a field is wrong */
export function readPlaygroundRequest(fields: typeof FIELDS): PlaygroundRequest {
  const { endpoint, key, model, other } = fields;
  if (!isEndpoint(endpoint)) throw new GatewayError("invalid", `Cannot send to the endpoint "${endpoint}"`);
  const models = [model, other].map((id) => id.trim()).filter((id) => id !== "");
  if (models.length === 0) throw new GatewayError("invalid", "Cannot send this: choose a model");
  if (key.trim() === "") {
    throw new GatewayError("invalid", "Cannot send this: choose a key, which the request is billed to");
  }
  return { key: key.trim(), endpoint, models, body: withMembers(bodyOf(endpoint, fields), readMore(fields)) };
}

type TextEndpoint = Protocol & PlaygroundEndpoint;

/** Returns whether an endpoint is one of a text protocol, whose requests can be streamed and translated. */
export function isText(endpoint: PlaygroundEndpoint): endpoint is TextEndpoint {
  return Object.hasOwn(CLIENT_CODECS, endpoint);
}

/** Adds members to a body. If both have an object, such as Gemini's `generationConfig`, the objects are merged. */
function withMembers(body: JsonObject, more: JsonObject): JsonObject {
  const merged = Object.entries(more).map(([name, value]): [string, Json] => {
    const present = body[name];
    return [name, isObject(present) && isObject(value) ? { ...present, ...value } : value ?? null];
  });
  return { ...body, ...Object.fromEntries(merged) };
}

function isEndpoint(name: string): name is PlaygroundEndpoint {
  return Object.hasOwn(ENDPOINT_PATHS, name);
}

function bodyOf(endpoint: PlaygroundEndpoint, fields: typeof FIELDS): JsonObject {
  const { system, prompt, documents, size } = fields;
  const instructions = system.trim();
  const maxTokens = readTokens(fields);
  const tools = isText(endpoint) ? readTools(endpoint, fields) : {};
  const user = { role: "user", content: prompt };
  switch (endpoint) {
    case "chat":
      return {
        messages: [...(instructions === "" ? [] : [{ role: "system", content: instructions }]), user],
        ...(maxTokens !== undefined && { max_tokens: maxTokens }),
        ...tools,
      };
    case "responses":
      return {
        ...(instructions !== "" && { instructions }),
        input: prompt,
        ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
        ...tools,
        store: false,
      };
    case "messages":
      return {
        ...(instructions !== "" && { system: instructions }),
        messages: [user],
        max_tokens: maxTokens ?? Number(FIELDS.max_tokens),
        ...tools,
      };
    case "gemini":
      return {
        ...(instructions !== "" && { systemInstruction: { parts: [{ text: instructions }] } }),
        contents: [{ role: "user", parts: [{ text: prompt }] }],
        ...(maxTokens !== undefined && { generationConfig: { maxOutputTokens: maxTokens } }),
        ...tools,
      };
    case "images":
      return { prompt, size: size.trim() || "auto", quality: "low", n: 1 };
    case "embeddings":
      return { input: linesOf(prompt) };
    case "rerank":
      return { query: prompt, documents: linesOf(documents) };
  }
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

function readTokens({ max_tokens: text }: typeof FIELDS): number | undefined {
  if (text.trim() === "") return undefined;
  if (/^\d{1,7}$/.test(text.trim())) return Number(text);
  throw new GatewayError("invalid", `Cannot read the maximum number of tokens "${text}": expected a whole number`);
}

/** Reads the tools. Those in the protocol's own form stay as they are; simple functions are converted to that form. */
function readTools(protocol: TextEndpoint, { tools: text }: typeof FIELDS): JsonObject {
  if (text.trim() === "") return {};
  const tools = readJson(text, "tools");
  if (!Array.isArray(tools)) throw new GatewayError("invalid", "Cannot read the tools: expected a JSON array");
  if (protocol !== "gemini") return { tools: tools.map((tool) => toolOf(protocol, tool)) };
  // All functions go into one tool. Google's own tools have no name.
  const functions = tools.filter((tool) => isObject(tool) && tool.name !== undefined);
  const others = tools.filter((tool) => !functions.includes(tool));
  return { tools: [...functions.length > 0 ? [{ functionDeclarations: functions }] : [], ...others] };
}

function toolOf(protocol: Exclude<TextEndpoint, "gemini">, tool: Json): Json {
  if (!isObject(tool) || tool.type !== undefined || tool.input_schema !== undefined) return tool;
  const { name = "", description = "", parameters = { type: "object", properties: {} } } = tool;
  switch (protocol) {
    case "chat":
      return { type: "function", function: { name, description, parameters } };
    case "responses":
      return { type: "function", name, description, parameters };
    case "messages":
      return { name, description, input_schema: parameters };
  }
}

function readMore({ more }: typeof FIELDS): JsonObject {
  if (more.trim() === "") return {};
  const members = readJson(more, "further members");
  if (!isObject(members)) throw new GatewayError("invalid", "Cannot read the further members: expected a JSON object");
  const reserved = ["model", "models", "stream"].find((name) => Object.hasOwn(members, name));
  if (reserved !== undefined) throw new GatewayError("invalid", `Cannot set "${reserved}" here: the form sets it`);
  return members;
}

function readJson(text: string, name: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new GatewayError("invalid", `Cannot read the ${name} as JSON`, { cause });
  }
}

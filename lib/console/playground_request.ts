/** Requests of the playground: the fields of its form, and the bodies that they make. */
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

/** Path and body of a request. Requests of Gemini's protocol have the model and the kind of answer in the path. */
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
  // Clients send the first slash of an id as it is.
  const name = [id.slice(0, slash), id.slice(slash + 1)].slice(slash < 0 ? 1 : 0).map(encodeURIComponent).join("/");
  const method = stream === true ? "streamGenerateContent?alt=sse" : "generateContent";
  return { path: `/v1beta/models/${name}:${method}`, body };
}

/** The fields of the form as they are typed, and the defaults. */
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

/** The request described by the form. */
export interface PlaygroundRequest {
  /** Name or id of the key. */
  key: string;
  endpoint: PlaygroundEndpoint;
  /** One or two models. */
  models: readonly string[];
  /** The body without its model. */
  body: JsonObject;
}

/** The fields that a form or an address has, and the defaults of the others. */
export function readFields(query: URLSearchParams): typeof FIELDS {
  return Object.fromEntries(
    Object.entries(FIELDS).map(([name, usual]) => [name, query.get(name) ?? usual]),
  ) as typeof FIELDS;
}

/** Reads the form. @throws {GatewayError} `invalid` */
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

/** A protocol that the form writes requests in. */
type TextEndpoint = Protocol & PlaygroundEndpoint;

/** Returns true for an endpoint with protocols that can be streamed and translated. */
export function isText(endpoint: PlaygroundEndpoint): endpoint is TextEndpoint {
  return Object.hasOwn(CLIENT_CODECS, endpoint);
}

/** Adds members to a body; those of objects in both, such as Gemini's `generationConfig`, are joined. */
function withMembers(body: JsonObject, more: JsonObject): JsonObject {
  const joined = Object.entries(more).map(([name, value]): [string, Json] => {
    const own = body[name];
    return [name, isObject(own) && isObject(value) ? { ...own, ...value } : value ?? null];
  });
  return { ...body, ...Object.fromEntries(joined) };
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

/** Tools in the protocol's own form; those with a name alone are functions, and are brought into it. */
function readTools(protocol: TextEndpoint, { tools: text }: typeof FIELDS): JsonObject {
  if (text.trim() === "") return {};
  const tools = readJson(text, "tools");
  if (!Array.isArray(tools)) throw new GatewayError("invalid", "Cannot read the tools: expected a JSON array");
  if (protocol !== "gemini") return { tools: tools.map((tool) => toolOf(protocol, tool)) };
  // One member has all functions; tools of Google's own have no name.
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
  const own = ["model", "models", "stream"].find((name) => Object.hasOwn(members, name));
  if (own !== undefined) throw new GatewayError("invalid", `Cannot set "${own}" here: the form sets it`);
  return members;
}

function readJson(text: string, name: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new GatewayError("invalid", `Cannot read the ${name} as JSON`, { cause });
  }
}

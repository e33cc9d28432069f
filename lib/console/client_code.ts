/** Writes a request as code: for curl, and for the SDKs of OpenAI, Anthropic and Google in JavaScript and Python. */
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { shellWord } from "../text.ts";
import { stringLiteral } from "./clients.ts";
import { addressOf, type PlaygroundEndpoint } from "./playground_request.ts";

/** Code that sends a request. It reads the key from `SLUICE_API_KEY`. */
export interface ClientCode {
  /** Name of the SDK and the language, for display. */
  name: string;
  text: string;
}

/** Functions of the SDKs by endpoint; absent: they have none. */
const SDK_FUNCTIONS: Readonly<Partial<Record<PlaygroundEndpoint, string>>> = {
  chat: "chat.completions.create",
  responses: "responses.create",
  messages: "messages.create",
  images: "images.generate",
  embeddings: "embeddings.create",
};

/** Parameters that the Python functions know, as far as the playground sets them. Others go into `extra_body`. */
const PYTHON_PARAMETERS: readonly string[] = [
  ...["model", "messages", "max_tokens", "tools", "instructions", "input", "max_output_tokens", "store", "system"],
  ...["prompt", "size", "quality", "n", "stream"],
];

/** Returns a request in all languages. @param request `origin`: URL of the gateway, such as `http://127.0.0.1:8790` */
export function codeFor(
  endpoint: PlaygroundEndpoint,
  { origin, body }: { origin: string; body: JsonObject },
): ClientCode[] {
  const call = SDK_FUNCTIONS[endpoint];
  const curl = { name: "curl", text: curlText(endpoint, { origin, body }) };
  if (endpoint === "gemini") return [curl, ...googleCode({ origin, body })];
  if (call === undefined) return [curl];
  const sdk = endpoint === "messages"
    ? { name: "Anthropic", module: "@anthropic-ai/sdk", python: "anthropic", base: `${origin}/anthropic` }
    : { name: "OpenAI", module: "openai", python: "openai", base: `${origin}/v1` };
  return [
    curl,
    {
      name: `${sdk.name}, JavaScript`,
      text: `import ${sdk.name} from ${stringLiteral(sdk.module)};

const client = new ${sdk.name}({ baseURL: ${stringLiteral(sdk.base)}, apiKey: process.env.SLUICE_API_KEY });
const answer = await client.${call}(${JSON.stringify(body, null, 2)});
console.log(answer);`,
    },
    {
      name: `${sdk.name}, Python`,
      text: `import os
from ${sdk.python} import ${sdk.name}

client = ${sdk.name}(base_url=${stringLiteral(sdk.base)}, api_key=os.environ["SLUICE_API_KEY"])
answer = client.${call}(
${pythonArguments(body)}
)
print(answer)`,
    },
  ];
}

/** Returns the code for Google's SDKs, which take the model and the contents, and everything else as `config`. */
function googleCode({ origin, body }: { origin: string; body: JsonObject }): ClientCode[] {
  const { model = "", contents = [], generationConfig = {}, ...others } = body;
  const config = { ...isObject(generationConfig) ? generationConfig : {}, ...others };
  const sent = { model, contents, ...Object.keys(config).length > 0 && { config } };
  return [
    {
      name: "Google, JavaScript",
      text: `import { GoogleGenAI } from "@google/genai";

const client = new GoogleGenAI({
  apiKey: process.env.SLUICE_API_KEY,
  httpOptions: { baseUrl: ${stringLiteral(origin)} },
});
const answer = await client.models.generateContent(${JSON.stringify(sent, null, 2)});
console.log(answer);`,
    },
    {
      name: "Google, Python",
      text: `import os
from google import genai

client = genai.Client(api_key=os.environ["SLUICE_API_KEY"], http_options={"base_url": ${stringLiteral(origin)}})
answer = client.models.generate_content(
${pythonLines(sent)}
)
print(answer)`,
    },
  ];
}

function curlText(endpoint: PlaygroundEndpoint, { origin, body }: { origin: string; body: JsonObject }): string {
  const credentials: Partial<Record<PlaygroundEndpoint, string>> = {
    messages: '-H "x-api-key: $SLUICE_API_KEY" -H "anthropic-version: 2023-06-01"',
    gemini: '-H "x-goog-api-key: $SLUICE_API_KEY"',
  };
  const { path, body: sent } = addressOf(endpoint, body);
  return `curl ${shellWord(origin + path)} \\
  ${credentials[endpoint] ?? '-H "Authorization: Bearer $SLUICE_API_KEY"'} \\
  -H "Content-Type: application/json" \\
  -d ${shellWord(JSON.stringify(sent, null, 2))}`;
}

function pythonArguments(body: JsonObject): string {
  const known = Object.entries(body).filter(([name]) => PYTHON_PARAMETERS.includes(name));
  const extra = Object.fromEntries(Object.entries(body).filter(([name]) => !PYTHON_PARAMETERS.includes(name)));
  return pythonLines({ ...Object.fromEntries(known), ...Object.keys(extra).length > 0 && { extra_body: extra } });
}

/** Formats members as named arguments of Python, one per line. */
function pythonLines(members: JsonObject): string {
  return Object.entries(members).map(([name, value]) => `    ${name}=${python(value ?? null, "    ")},`).join("\n");
}

function python(value: Json, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  const inner = `${indent}    `;
  if (Array.isArray(value)) {
    return value.length === 0
      ? "[]"
      : `[\n${value.map((item) => `${inner}${python(item, inner)},\n`).join("")}${indent}]`;
  }
  if (isObject(value)) {
    const members = Object.entries(value)
      .map(([name, member]) => `${inner}${stringLiteral(name)}: ${python(member ?? null, inner)},\n`);
    return members.length === 0 ? "{}" : `{\n${members.join("")}${indent}}`;
  }
  return JSON.stringify(value);
}

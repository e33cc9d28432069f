/**
 * A server for `generateContent`. It forwards requests to the echo model over chat and writes the answers in Gemini's
 * own way: calls without ids, signatures on the signed parts, chunks of one word.
 */
import type { Gateway } from "./gateway.ts";
import { type Body, post } from "./sse.ts";

/** Key that the server wants. */
export const GEMINI_KEY = "AIza-for-tests";

/** A running server. */
export interface GeminiServer extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123/v1beta`. */
  readonly url: string;
}

type Part = Body & {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  functionCall?: { name: string; args: Body; id?: string };
  functionResponse?: { name: string; response: Body; id?: string; parts?: Part[] };
  inlineData?: { mimeType: string; data: string };
  fileData?: { mimeType?: string; fileUri: string };
};

interface Content {
  role?: string;
  parts: Part[];
}

interface GenerateRequest {
  contents: Content[];
  systemInstruction?: Content;
  tools?: {
    functionDeclarations: { name: string; description?: string; parametersJsonSchema?: Body; parameters?: Body }[];
  }[];
  toolConfig?: { functionCallingConfig: { mode: string; allowedFunctionNames?: string[] } };
  generationConfig?: Body & {
    thinkingConfig?: { thinkingBudget?: number; thinkingLevel?: string; includeThoughts?: boolean };
  };
}

interface Completion {
  choices: [{
    message: {
      content: string | null;
      reasoning_content?: string;
      tool_calls?: { function: { name: string; arguments: string } }[];
    };
    finish_reason: string;
  }];
  usage: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    completion_tokens_details: { reasoning_tokens: number };
  };
}

/** Placeholder for the signature of a call that another model made. */
const UNSIGNED = "skip_thought_signature_validator";

/** A request that the server refuses. */
class Refusal extends Error {}

/** Starts a server that answers with the gateway's echo model. */
export function startGemini(backend: Gateway): GeminiServer {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    try {
      return await answer(request, backend);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return failure(400, error.message);
    }
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/v1beta`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Parses JSON so that `JSON.stringify` writes its numbers as they were: 64 bits are more than a float holds. */
function parseExact(text: string): unknown {
  const raw = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON;
  const revive = (_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === "number" && source !== undefined && String(value) !== source ? raw(source) : value;
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}

function failure(code: number, message: string): Response {
  const status = code === 400 ? "INVALID_ARGUMENT" : "INTERNAL";
  return Response.json({ error: { code, message, status } }, { status: code });
}

async function answer(request: Request, backend: Gateway): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const [, method] = /^\/v1beta\/models\/echo:(generateContent|streamGenerateContent)$/.exec(pathname) ?? [];
  if (method === undefined || request.headers.get("x-goog-api-key") !== GEMINI_KEY) return failure(400, pathname);
  const given = parseExact(await request.text()) as GenerateRequest;
  const joined = { ...given, contents: joinTurns(given.contents) };
  checkTurns(joined.contents);
  for (const { role, parts } of joined.contents) {
    if (role === "model") await checkSignatures(parts);
  }
  const response = await post(backend, "/v1/chat/completions", writeChat(joined));
  if (!response.ok) return failure(response.status, (await response.json()).error.message);
  const completion = parseExact(await response.text()) as Completion;
  const pieces = await writeAnswer(completion, joined);
  if (method === "generateContent") return Response.json(whole(pieces));
  if (searchParams.get("alt") !== "sse") throw new Refusal("Expected alt=sse");
  return new Response(pieces.map((piece) => `data: ${JSON.stringify(piece)}\r\n\r\n`).join(""), {
    headers: { "content-type": "text/event-stream" },
  });
}

/** Adjacent contents of one role, and adjacent texts, are one: chats of Google's SDKs keep each piece of an answer. */
function joinTurns(contents: readonly Content[]): Content[] {
  const joined: Content[] = [];
  for (const { role = "user", parts } of contents) {
    const last = joined.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else joined.push({ role, parts: [...parts] });
  }
  return joined.map(({ role, parts }) => ({
    role: role ?? "user",
    parts: role === "model" ? joinTexts(parts) : parts,
  }));
}

function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    const goesOn = part.text !== undefined && last?.text !== undefined && part.thought === last.thought;
    if (goesOn) Object.assign(last, part, { text: `${last.text}${part.text}` });
    else joined.push({ ...part });
  }
  return joined;
}

/**
 * Messages begin with the user and alternate; a result names a call of the previous message. Google refuses more results
 * than calls, too: https://github.com/google-gemini/gemini-cli/issues/7410
 */
function checkTurns(contents: readonly Content[]): void {
  contents.forEach(({ role, parts }, index) => {
    if (role !== (index % 2 === 0 ? "user" : "model")) throw new Refusal(`Turn ${index} is of role ${role}`);
    if (parts.length === 0) throw new Refusal(`Turn ${index} has no parts`);
    const calls = contents[index - 1]?.parts.flatMap(({ functionCall }) => functionCall?.name ?? []) ?? [];
    const results = parts.flatMap(({ functionResponse }) => functionResponse?.name ?? []);
    if (role === "user" && calls.join() !== results.join()) {
      throw new Refusal(`Turn ${index} answers the calls ${calls} with ${results}`);
    }
  });
}

/** Checks that every signature is on the part for which it was made. */
async function checkSignatures(parts: readonly Part[]): Promise<void> {
  for (const part of parts) {
    const { thoughtSignature } = part;
    if (thoughtSignature === undefined || (thoughtSignature === UNSIGNED && part.functionCall !== undefined)) continue;
    if (thoughtSignature === await sign(part)) continue;
    throw new Refusal(`Thought signature is not valid on ${JSON.stringify(part)}`);
  }
}

async function sign({ text, functionCall }: Part): Promise<string> {
  const signed = JSON.stringify(functionCall === undefined ? { text } : [functionCall.name, functionCall.args]);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`signed by the test ${signed}`));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}

function writeChat({ contents, systemInstruction, tools, toolConfig, generationConfig = {} }: GenerateRequest): Body {
  const { maxOutputTokens, stopSequences, responseMimeType, responseSchema, thinkingConfig } = generationConfig;
  const { responseJsonSchema = inJsonSchema(responseSchema) } = generationConfig;
  const system = systemInstruction?.parts.map(({ text }) => text).join("\n");
  const isThinking = thinkingConfig !== undefined && thinkingConfig.thinkingBudget !== 0;
  const choice = toolConfig?.functionCallingConfig;
  return {
    model: "sluice/echo",
    messages: [...(system === undefined ? [] : [{ role: "system", content: system }]), ...contents.flatMap(writeTurn)],
    ...(tools !== undefined && {
      tools: tools.flatMap(({ functionDeclarations }) => functionDeclarations).map((
        { name, description, parameters: openapi, parametersJsonSchema: parameters = inJsonSchema(openapi) },
      ) => ({ type: "function", function: { name, description, parameters } })),
    }),
    ...(choice !== undefined && { tool_choice: writeChoice(choice) }),
    ...(maxOutputTokens !== undefined && { max_completion_tokens: maxOutputTokens }),
    ...(stopSequences !== undefined && { stop: stopSequences }),
    ...(isThinking && { reasoning_effort: "low" }),
    ...(responseMimeType === "application/json" && {
      response_format: responseJsonSchema === undefined
        ? { type: "json_object" }
        : { type: "json_schema", json_schema: { name: "answer", schema: responseJsonSchema } },
    }),
  };
}

/** A schema in OpenAPI's form, whose types Google's SDKs write in capitals, as JSON Schema. */
function inJsonSchema(schema: unknown): unknown {
  const lower = (name: string, value: unknown) =>
    name === "type" && typeof value === "string" ? value.toLowerCase() : value;
  return schema === undefined ? undefined : JSON.parse(JSON.stringify(schema), lower);
}

function writeChoice(
  { mode, allowedFunctionNames: names }: { mode: string; allowedFunctionNames?: string[] },
): unknown {
  if (names !== undefined) {
    const tools = names.map((name) => ({ type: "function", function: { name } }));
    return { type: "allowed_tools", allowed_tools: { mode: mode === "ANY" ? "required" : "auto", tools } };
  }
  return mode === "ANY" ? "required" : mode.toLowerCase();
}

/** Calls are numbered, as they have no ids of the server's own. */
function writeTurn({ role, parts }: Content, turn: number): Body[] {
  if (role === "model") {
    const text = parts.flatMap((part) => part.thought === true ? [] : part.text ?? []).join("");
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []).map(({ name, args }, index) => ({
      id: `${turn}_${index}`,
      type: "function",
      function: { name, arguments: JSON.stringify(args) },
    }));
    return [{ role: "assistant", content: text, ...(calls.length > 0 && { tool_calls: calls }) }];
  }
  const results = parts.flatMap(({ functionResponse }) => functionResponse ?? []);
  const content = [...results.flatMap(({ parts = [] }) => parts), ...parts].filter(isUsers).flatMap(writePart);
  return [
    ...results.map(({ response }, index) => ({
      role: "tool",
      tool_call_id: `${turn - 1}_${index}`,
      content: writeResult(response),
    })),
    ...(content.length > 0 ? [{ role: "user", content }] : []),
  ];
}

/** The echo model does not repeat text that is marked as the system's. */
function isUsers({ text }: Part): boolean {
  return text === undefined || !/^<system>\n[^]*\n<\/system>$/.test(text);
}

function writeResult({ result, output = result, error, ...others }: Body): string {
  if (typeof error === "string") return `[error] ${error}`;
  return typeof output === "string" ? output : JSON.stringify(others);
}

function writePart({ text, inlineData, fileData }: Part): Body[] {
  if (text !== undefined) return [{ type: "text", text }];
  const url = fileData?.fileUri ?? `data:${inlineData?.mimeType};base64,${inlineData?.data}`;
  const mimeType = inlineData?.mimeType ?? fileData?.mimeType ?? "";
  if (mimeType.startsWith("image/") || inlineData === undefined && fileData !== undefined) {
    return [{ type: "image_url", image_url: { url } }];
  }
  return inlineData === undefined ? [] : [{ type: "file", file: { file_data: url, filename: "file" } }];
}

/** Writes the answer in chunks: thoughts, the text word by word, the calls; the last text or first call is signed. */
async function writeAnswer(
  { choices: [{ message, finish_reason }], usage }: Completion,
  { generationConfig }: GenerateRequest,
): Promise<Body[]> {
  const { reasoning_content: thought, content, tool_calls = [] } = message;
  const calls: Part[] = tool_calls.map(({ function: { name, arguments: text } }) => ({
    functionCall: { name, args: parseExact(text) as Body },
  }));
  const parts: Part[] = [];
  if (thought !== undefined && generationConfig?.thinkingConfig?.includeThoughts === true) {
    parts.push({ text: thought, thought: true });
  }
  for (const text of content?.match(/\s*[\p{L}\p{N}]+|\s*[^\s\p{L}\p{N}]|\s+/gu) ?? []) parts.push({ text });
  const [first] = calls;
  if (thought !== undefined && first !== undefined) first.thoughtSignature = await sign(first);
  // The signature of a text comes at its end, in a chunk of its own.
  else if (thought !== undefined && content) parts.push({ text: "", thoughtSignature: await sign({ text: content }) });
  parts.push(...calls);
  const { reasoning_tokens: thoughts } = usage.completion_tokens_details;
  const end = {
    finishReason: finish_reason === "length" ? "MAX_TOKENS" : "STOP",
    usageMetadata: {
      promptTokenCount: usage.prompt_tokens,
      candidatesTokenCount: usage.completion_tokens - thoughts,
      ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
      totalTokenCount: usage.total_tokens,
    },
  };
  const pieces = parts.length === 0 ? [[]] : parts.map((part) => [part]);
  return pieces.map((parts, index) => ({
    candidates: [{
      content: { role: "model", parts },
      index: 0,
      ...(index === pieces.length - 1 && { finishReason: end.finishReason }),
    }],
    ...(index === pieces.length - 1 && { usageMetadata: end.usageMetadata }),
    modelVersion: "echo",
    responseId: "answer",
  }));
}

/** Joins all chunks: adjacent texts become one part with their signature. */
function whole(pieces: Body[]): Body {
  const parts: Part[] = [];
  for (const { candidates } of pieces) {
    const [{ content }] = candidates as [{ content: Content }];
    for (const part of content.parts) {
      const last = parts.at(-1);
      const goesOn = part.text !== undefined && last?.text !== undefined && part.thought === last.thought;
      if (goesOn) parts[parts.length - 1] = { ...last, ...part, text: `${last.text}${part.text}` };
      else parts.push(part);
    }
  }
  const last = pieces.at(-1) as Body & { candidates: [Body] };
  return { ...last, candidates: [{ ...last.candidates[0], content: { role: "model", parts } }] };
}

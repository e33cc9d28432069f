/**
 * Requests as coding agents send them in the middle of their work: a system prompt, tools with JSON Schemas, calls and
 * their results, cache marks, and an image if the size allows it. The form of each protocol is that of the agent that
 * uses it most: opencode for chat, Codex for responses, Claude Code for messages; small requests are those of the
 * Vercel AI SDK. Recorded from the clients that docs/reference/clients.md lists, with other texts.
 */
import type { Protocol } from "./bodies.ts";

/** Tools of an agent, and of a program with few tools. */
const TOOL_COUNT = { agent: 14, few: 3 };
/** Requests below this size, in bytes, have few tools, and no image. */
const FEW_TOOLS_BELOW = 20_000;
/** Length of the image, in base64 characters: a small screenshot. */
const IMAGE_CHARS = 6_000;

const NAMES = [
  ...["read_file", "write_file", "edit_file", "list_folder", "search_text", "run_command", "fetch_page"],
  ...["update_plan", "ask_user", "start_task", "notebook_edit", "git_diff", "git_log", "diagnostics"],
];

const SYSTEM = `You are an agent that edits a code base in a terminal. Work in small steps.\n\n` +
  `# Rules\n- Read a file before you change it.\n- Never print secrets.\n- Prefer "rg" to "grep".\n` +
  `- Paths are relative to <env>/srv/app</env>.\n\n`;

const FILE_LINES = [
  `import { openStore } from "./store.ts";`,
  `export async function handle(request: Request): Promise<Response> {`,
  `\tconst url = new URL(request.url);`,
  `\tif (url.pathname === "/") return new Response("ok\\n", { headers: { "content-type": "text/plain" } });`,
  `\t// Der Schlüssel läuft nach 24 h ab → siehe docs/keys.md`,
  `\tconst row = await store.find({ id: url.searchParams.get("id") ?? "" });`,
  `\treturn Response.json(row ?? { error: "not_found", id: 1234567890123 }, { status: row ? 200 : 404 });`,
  `}`,
];

/** One step of an agent: a sentence, a call, and what the tool returned. */
interface AgentStep {
  text: string;
  tool: string;
  input: Record<string, unknown>;
  result: string;
}

/** A JSON Schema of a tool's arguments, with nesting as real tools have. */
function schemaOf(index: number): Record<string, unknown> {
  return {
    type: "object",
    properties: {
      path: { type: "string", description: "Path of the file, relative to the working folder; no '..' segments" },
      offset: { type: "integer", minimum: 0, maximum: 1_000_000, description: "First line to read" },
      mode: { type: "string", enum: ["plain", "numbered", "diff"], default: "plain" },
      edits: {
        type: "array",
        maxItems: 64,
        items: {
          type: "object",
          properties: {
            old_text: { type: "string", description: `Exact text, as read by "${NAMES[index % NAMES.length]}"` },
            new_text: { type: "string" },
            replace_all: { type: "boolean", default: false },
          },
          required: ["old_text", "new_text"],
          additionalProperties: false,
        },
      },
      timeout_ms: { anyOf: [{ type: "number", exclusiveMinimum: 0 }, { type: "null" }] },
    },
    required: ["path"],
    additionalProperties: false,
    $schema: "http://json-schema.org/draft-07/schema#",
  };
}

function descriptionOf(name: string): string {
  return `Use ${name} for one file at a time. ` +
    `The result has line numbers ("   12→text"). It fails if the path does not exist or is binary. `.repeat(2);
}

function stepOf(number: number, resultChars: number): AgentStep {
  let result = "";
  for (let line = 1; result.length < resultChars; line++) {
    result += `${String(line).padStart(5)}→${FILE_LINES[(line + number) % FILE_LINES.length]}\n`;
  }
  return {
    text: number % 3 === 0 ? "" : `I'll look at module ${number} next.`,
    tool: NAMES[number % TOOL_COUNT.few] ?? "read_file",
    input: { path: `src/module_${number}/handler.ts`, offset: number * 10, mode: "numbered" },
    result: result.slice(0, resultChars),
  };
}

/** The body of an agent's request of about this size in bytes. */
export function agentBody(
  { protocol, bytes, model, stream }: { protocol: Protocol; bytes: number; model: string; stream: boolean },
): string {
  const few = bytes < FEW_TOOLS_BELOW;
  const tools = NAMES.slice(0, few ? TOOL_COUNT.few : TOOL_COUNT.agent);
  const write = { chat: chatBody, responses: responsesBody, messages: messagesBody }[protocol];
  const parts = { tools, model, stream, image: few ? undefined : "iVBORw0KGgo".repeat(600).slice(0, IMAGE_CHARS) };
  const fixed = JSON.stringify(write({ ...parts, steps: [] })).length;
  const count = few ? 2 : Math.ceil(bytes / 6_000);
  // JSON escapes quotes, tabs and line ends of results, and UTF-8 has more bytes than characters.
  const each = Math.max(50, ((bytes - fixed) / count - 450) / 1.13);
  return JSON.stringify(write({ ...parts, steps: Array.from({ length: count }, (_, at) => stepOf(at, each)) }));
}

interface AgentParts {
  tools: readonly string[];
  steps: readonly AgentStep[];
  model: string;
  stream: boolean;
  /** Base64 of a PNG; absent: none. */
  image: string | undefined;
}

const TASK = "The tests in src/module_3 fail since yesterday. Find out why and repair it.";

function chatBody({ tools, steps, model, stream, image }: AgentParts): unknown {
  return {
    model,
    messages: [
      { role: "system", content: SYSTEM.repeat(4) },
      {
        role: "user",
        content: [
          { type: "text", text: TASK },
          ...(image === undefined ? [] : [{ type: "image_url", image_url: { url: `data:image/png;base64,${image}` } }]),
        ],
      },
      ...steps.flatMap(({ text, tool, input, result }, at) => [
        {
          role: "assistant",
          content: text === "" ? null : text,
          tool_calls: [
            { id: `call_${at}aZ9`, type: "function", function: { name: tool, arguments: JSON.stringify(input) } },
          ],
        },
        { role: "tool", tool_call_id: `call_${at}aZ9`, content: result },
      ]),
    ],
    tools: tools.map((name, index) => ({
      type: "function",
      function: { name, description: descriptionOf(name), parameters: schemaOf(index) },
    })),
    tool_choice: "auto",
    max_tokens: 32_000,
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  };
}

function responsesBody({ tools, steps, model, stream, image }: AgentParts): unknown {
  return {
    model,
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: SYSTEM.repeat(4) }] },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: TASK },
          ...(image === undefined ? [] : [{ type: "input_image", image_url: `data:image/png;base64,${image}` }]),
        ],
      },
      ...steps.flatMap(({ text, tool, input, result }, at) => [
        ...(text === "" ? [] : [{ type: "message", role: "assistant", content: [{ type: "output_text", text }] }]),
        { type: "function_call", name: tool, arguments: JSON.stringify(input), call_id: `call_${at}aZ9` },
        { type: "function_call_output", call_id: `call_${at}aZ9`, output: result },
      ]),
    ],
    tools: tools.map((name, index) => ({
      type: "function",
      name,
      description: descriptionOf(name),
      strict: false,
      parameters: schemaOf(index),
    })),
    tool_choice: "auto",
    parallel_tool_calls: false,
    store: false,
    stream,
    include: [],
    prompt_cache_key: "0199a1b2-3c4d-7e5f-8a9b-0c1d2e3f4a5b",
  };
}

function messagesBody({ tools, steps, model, stream, image }: AgentParts): unknown {
  const mark = { cache_control: { type: "ephemeral" } };
  return {
    model,
    max_tokens: 32_000,
    system: [
      { type: "text", text: "x-billing-header: version=2.1; entry=cli" },
      { type: "text", text: SYSTEM.repeat(4), ...mark },
    ],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "<system-reminder>\nThe working folder is /srv/app.\n</system-reminder>" },
          { type: "text", text: TASK },
          ...(image === undefined
            ? []
            : [{ type: "image", source: { type: "base64", media_type: "image/png", data: image } }]),
        ],
      },
      ...steps.flatMap(({ text, tool, input, result }, at) => [
        {
          role: "assistant",
          content: [
            ...(text === "" ? [] : [{ type: "text", text }]),
            { type: "tool_use", id: `toolu_${at}aZ9`, name: tool, input },
          ],
        },
        {
          role: "user",
          content: [{
            type: "tool_result",
            tool_use_id: `toolu_${at}aZ9`,
            content: result,
            ...(at === steps.length - 1 && mark),
          }],
        },
      ]),
    ],
    tools: tools.map((name, index) => ({ name, description: descriptionOf(name), input_schema: schemaOf(index) })),
    metadata: { user_id: `{"device":"d1f0","session":"0199a1b2"}` },
    ...(stream && { stream: true }),
  };
}

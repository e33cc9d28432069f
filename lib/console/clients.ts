/** Settings of clients. The page "Connect" shows them, and tests compare the documentation with them. */
import { shellWord } from "../text.ts";

/** The gateway and the model to connect to. */
export interface ClientConnection {
  /** URL of the gateway, such as `http://127.0.0.1:8790`. */
  origin: string;
  model: string;
}

/** Settings of one client. */
export interface ClientSettings {
  name: string;
  kind: "SDK" | "agent";
  /** Protocol that it speaks with these settings. */
  protocol: "chat" | "responses" | "messages" | "gemini";
  /** The file or dialog that the settings go into. */
  place: string;
  settings(connection: ClientConnection): string;
  /** Additional note; absent: none. */
  note?: string;
}

const SHELL = "Environment variables";
const ANTHROPIC_ALTERNATIVE = "Or an Anthropic provider, with the address that ends with /anthropic.";

/** Vercel's SDK, which has a package for each protocol. */
const VERCEL_AI: readonly ClientSettings[] = ([
  ["chat", 'createOpenAICompatible({ name: "sluice", ', "/v1"],
  ["responses", "createOpenAI({ ", "/v1"],
  ["messages", "createAnthropic({ ", "/anthropic/v1"],
] as const).map(([protocol, create, path]) => ({
  name: `Vercel AI, ${protocol}`,
  kind: "SDK",
  protocol,
  place: "JavaScript",
  settings: ({ origin, model }) =>
    `const apiKey = process.env.SLUICE_API_KEY;
const sluice = ${create}baseURL: ${stringLiteral(`${origin}${path}`)}, apiKey });
const model = sluice(${stringLiteral(model)});`,
}));

/** Agents that have a dialog for hosts with OpenAI's protocol. */
const OPENAI_COMPATIBLE: readonly ClientSettings[] = [
  ["Cline", `${ANTHROPIC_ALTERNATIVE} The Cline CLI needs CLINE_SESSION_BACKEND_MODE=local.`] as const,
  ...["Continue", "pi"].map((name) => [name, ANTHROPIC_ALTERNATIVE] as const),
].map(([name, note]) => ({
  name,
  kind: "agent",
  protocol: "chat",
  place: "An OpenAI-compatible provider",
  settings: ({ origin, model }) => `Base URL: ${origin}/v1\nModel: ${model}`,
  note,
}));

/** All clients. They read the key from `SLUICE_API_KEY`, or from a variable of their own that is set from it. */
export const CLIENTS: readonly ClientSettings[] = [
  {
    name: "OpenAI",
    kind: "SDK",
    protocol: "chat",
    place: SHELL,
    settings: ({ origin }) => `export OPENAI_BASE_URL=${origin}/v1 OPENAI_API_KEY=$SLUICE_API_KEY`,
  },
  {
    name: "Anthropic",
    kind: "SDK",
    protocol: "messages",
    place: SHELL,
    settings: ({ origin }) => `export ANTHROPIC_BASE_URL=${origin}/anthropic ANTHROPIC_API_KEY=$SLUICE_API_KEY`,
  },
  {
    name: "Google",
    kind: "SDK",
    protocol: "gemini",
    place: SHELL,
    settings: ({ origin }) => `export GOOGLE_GEMINI_BASE_URL=${origin} GEMINI_API_KEY=$SLUICE_API_KEY`,
    note: "With GOOGLE_API_KEY set as well, that key is sent.",
  },
  ...VERCEL_AI,
  {
    name: "LangChain",
    kind: "SDK",
    protocol: "chat",
    place: "JavaScript",
    settings: ({ origin, model }) =>
      `const apiKey = process.env.SLUICE_API_KEY;
const baseURL = ${stringLiteral(`${origin}/v1`)};
const model = new ChatOpenAI({ model: ${stringLiteral(model)}, apiKey, configuration: { baseURL } });`,
  },
  {
    name: "OpenAI Agents",
    kind: "SDK",
    protocol: "responses",
    place: SHELL,
    settings: ({ origin }) =>
      `export OPENAI_BASE_URL=${origin}/v1 OPENAI_API_KEY=$SLUICE_API_KEY
export OPENAI_AGENTS_DISABLE_TRACING=1`,
    note: "Without the last variable it sends traces to OpenAI.",
  },
  {
    name: "Claude Code",
    kind: "agent",
    protocol: "messages",
    place: SHELL,
    settings: ({ origin, model }) =>
      `export ANTHROPIC_BASE_URL=${origin}/anthropic ANTHROPIC_API_KEY=$SLUICE_API_KEY
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
claude --model ${shellWord(model)}`,
  },
  {
    name: "Codex",
    kind: "agent",
    protocol: "responses",
    place: "~/.codex/config.toml",
    settings: ({ origin, model }) =>
      `model = ${stringLiteral(model)}
model_provider = "sluice"

[model_providers.sluice]
name = "Sluice"
base_url = ${stringLiteral(`${origin}/v1`)}
env_key = "SLUICE_API_KEY"
wire_api = "responses"`,
  },
  {
    name: "Gemini CLI",
    kind: "agent",
    protocol: "gemini",
    place: SHELL,
    settings: ({ origin, model }) =>
      `export GOOGLE_GEMINI_BASE_URL=${origin} GEMINI_API_KEY=$SLUICE_API_KEY
gemini --model ${shellWord(model)}`,
  },
  {
    name: "opencode",
    kind: "agent",
    protocol: "chat",
    place: "opencode.json",
    settings: ({ origin, model }) =>
      `{
  "provider": {
    "sluice": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": ${stringLiteral(`${origin}/v1`)}, "apiKey": "{env:SLUICE_API_KEY}" },
      "models": { ${stringLiteral(model)}: {} }
    }
  }
}`,
  },
  {
    name: "Qwen Code",
    kind: "agent",
    protocol: "chat",
    place: SHELL,
    settings: ({ origin, model }) =>
      `export OPENAI_BASE_URL=${origin}/v1 OPENAI_API_KEY=$SLUICE_API_KEY OPENAI_MODEL=${shellWord(model)}`,
  },
  ...OPENAI_COMPATIBLE,
];

/** Returns a text as a string literal that is valid in JSON, JavaScript, Python and TOML. */
export function stringLiteral(text: string): string {
  return JSON.stringify(text);
}

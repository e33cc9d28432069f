/** Coding agents and how they are called: their packages, settings, and prompts that make the echo model use a tool. */

/** A gateway and a model for an agent. */
export interface Endpoint {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  key: string;
  model: string;
}

/** The folders of one run. */
export interface Folders {
  /** Settings and sessions. */
  home: string;
  /** The project that the agent works in. */
  project: string;
}

/** One call of an agent. */
export interface AgentCall {
  args: readonly string[];
  /** Text on its standard input. */
  input?: string;
  env?: Readonly<Record<string, string>>;
}

/** A coding agent. */
export interface Agent {
  name: string;
  /** Of npm. */
  package: string;
  version: string;
  /** Its program in the package's folder of programs. */
  program: string;
  /** A script of the package that npm may refuse to run; absent: none. */
  install?: string;
  /** Writes its settings; `context` makes the model's context so small that the agent compacts. */
  configure?(endpoint: Endpoint, folders: Folders, context?: number): Promise<void>;
  /** A call with a prompt. */
  run(prompt: string, endpoint: Endpoint): AgentCall;
  /** The arguments of a call that continues the last session. `image`: a file to attach. */
  resume(prompt: string, endpoint: Endpoint, image?: string): AgentCall;
  /** A prompt that makes the echo model show files through parallel calls of a tool. */
  showFiles(paths: readonly string[]): string;
  /** The same for an image; absent: it has no tool that gives the model an image. */
  showImage?(path: string): string;
  /** Present if it waits for a limit and for a busy upstream. */
  patience?: {
    /** A part of the text that it prints when it gives up at an exhausted budget. */
    budgetText: string;
  };
  /** Its way to shorten a conversation; absent: it needs a terminal. */
  compaction?: {
    /**
     * Called in the session; absent: it compacts by itself when it continues after `configure` with a small context.
     */
    call?(endpoint: Endpoint): AgentCall;
    /** Text that its own files then contain. */
    evidence: string;
  };
}

/** A context window that the system prompt of every agent fits, but not with a long text and its echo. */
export const SMALL_CONTEXT = 14_000;

/** The gateway's text at an exhausted budget. */
const REFUSED = "Cannot pay for this request";

/** A line that makes the echo model call a tool. */
function call(tool: string, input: Readonly<Record<string, unknown>>): string {
  return `call:${tool} ${JSON.stringify(input)}`;
}

/** A line for each file. */
function calls(tool: string, member: string): (paths: readonly string[]) => string {
  return (paths) => paths.map((path) => call(tool, { [member]: path })).join("\n");
}

const CLAUDE_CODE: Agent = {
  name: "Claude Code",
  package: "@anthropic-ai/claude-code",
  version: "2.1.330",
  program: "claude",
  install: "install.cjs",
  patience: { budgetText: REFUSED },
  run: (prompt, endpoint) => claude(["-p", prompt], endpoint),
  resume: (prompt, endpoint) => claude(["-c", "-p", prompt], endpoint),
  showFiles: (paths) =>
    paths.map((path) => call("Bash", { command: `cat ${path}`, description: "Show a file" })).join("\n"),
  showImage: (path) => call("Read", { file_path: path }),
  compaction: { call: (endpoint) => claude(["-c", "-p", "/compact"], endpoint), evidence: '"compact_boundary"' },
};

function claude(args: string[], { url, key, model }: Endpoint): AgentCall {
  return {
    args: [...args, "--model", model, "--allowedTools", "Bash,Read"],
    env: {
      ANTHROPIC_BASE_URL: `${url}/anthropic`,
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  };
}

/** Codex as a customer of the gateway by its name, or of OpenAI at the gateway's address. */
function codex(name: string, provider: "own" | "own, sockets" | "built in"): Agent {
  const flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
  const env = ({ key }: Endpoint) => ({ SLUICE_API_KEY: key, CODEX_API_KEY: key });
  return {
    name,
    package: "@openai/codex",
    version: "0.169.0",
    program: "codex",
    // It shows its own text for the code `insufficient_quota`.
    ...(provider === "own" && { patience: { budgetText: "Quota exceeded" } }),
    async configure({ url, model }, { home }, context) {
      await Deno.mkdir(`${home}/.codex`, { recursive: true });
      await Deno.writeTextFile(
        `${home}/.codex/config.toml`,
        [
          `model = "${model}"`,
          // It keeps the texts of the user.
          ...context === undefined ? [] : [`model_auto_compact_token_limit = ${context + 5_000}`],
          ...provider === "built in" ? [`openai_base_url = "${url}/v1"`] : [
            'model_provider = "sluice"',
            "[model_providers.sluice]",
            'name = "Sluice"',
            `base_url = "${url}/v1"`,
            'env_key = "SLUICE_API_KEY"',
            'wire_api = "responses"',
            `supports_websockets = ${provider === "own, sockets"}`,
          ],
          "",
        ].join("\n"),
      );
    },
    run: (prompt, endpoint) => ({ args: ["exec", ...flags, prompt], env: env(endpoint) }),
    resume: (prompt, endpoint, image) => ({
      args: ["exec", ...flags, "resume", "--last", ...image === undefined ? [] : ["-i", image], "--", prompt],
      env: env(endpoint),
    }),
    showFiles: (paths) => paths.map((path) => call("exec_command", { cmd: `cat ${path}` })).join("\n"),
    showImage: (path) => call("view_image", { path }),
    compaction: { evidence: '"type":"compacted"' },
  };
}

/** opencode with one of the AI SDK's providers, or with its own for OpenAI, which can use WebSockets. */
function opencode(protocol: string, provider: string, base: string): Agent {
  const sockets = protocol === "WebSocket";
  const named = ({ model }: Endpoint) => `${sockets ? "openai" : "sluice"}/${model}`;
  const env: Record<string, string> = sockets ? { OPENCODE_EXPERIMENTAL_WEBSOCKETS: "true" } : {};
  const run = (args: readonly string[], endpoint: Endpoint, input: string): AgentCall => ({
    args: ["run", ...args, "-m", named(endpoint)],
    // It puts quotes around a prompt among its arguments.
    input,
    env,
  });
  return {
    name: `opencode, ${protocol}`,
    package: "opencode-ai",
    version: "1.18.33",
    program: "opencode",
    install: "postinstall.mjs",
    async configure(endpoint, { home, project }, context = 131_072) {
      const { url, key, model } = endpoint;
      const options = { baseURL: `${url}${base}`, apiKey: key };
      const modalities = { input: ["text", "image"], output: ["text"] };
      const limit = { context, output: 1_000 };
      const models = { [model]: { attachment: true, tool_call: true, modalities, limit } };
      await Deno.writeTextFile(
        `${project}/opencode.json`,
        JSON.stringify({
          ...{ autoupdate: false, share: "disabled", model: named(endpoint), small_model: named(endpoint) },
          provider: sockets ? { openai: { options, models } } : { sluice: { npm: provider, options, models } },
        }),
      );
      if (!sockets) return;
      // It uses WebSockets for stored keys only.
      const folder = `${home}/.local/share/opencode`;
      await Deno.mkdir(folder, { recursive: true });
      await Deno.writeTextFile(`${folder}/auth.json`, JSON.stringify({ openai: { type: "api", key } }));
    },
    run: (input, endpoint) => run([], endpoint, input),
    resume: (input, endpoint, image) => run(["-c", ...image === undefined ? [] : ["-f", image]], endpoint, input),
    showFiles: calls("read", "filePath"),
    showImage: (path) => call("read", { filePath: path }),
    compaction: { evidence: '"compaction"' },
  };
}

const QWEN_CODE: Agent = {
  name: "Qwen Code",
  package: "@qwen-code/qwen-code",
  version: "0.24.4",
  program: "qwen",
  run: (prompt, endpoint) => qwen(["-p", prompt], endpoint),
  resume: (prompt, endpoint) => qwen(["-c", "-p", prompt], endpoint),
  showFiles: calls("read_file", "file_path"),
  compaction: { call: (endpoint) => qwen(["-c", "-p", "/compress"], endpoint), evidence: '"chat_compression"' },
};

function qwen(args: string[], { url, key, model }: Endpoint): AgentCall {
  return {
    args: ["--yolo", ...args],
    env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: model },
  };
}

const GEMINI_CLI: Agent = {
  name: "Gemini CLI",
  package: "@google/gemini-cli",
  version: "0.61.0",
  program: "gemini",
  patience: { budgetText: REFUSED },
  // Without a terminal it refuses the method that it chooses for a base URL.
  async configure(_endpoint, { home }) {
    await Deno.mkdir(`${home}/.gemini`, { recursive: true });
    await Deno.writeTextFile(
      `${home}/.gemini/settings.json`,
      JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }),
    );
  },
  run: (prompt, endpoint) => gemini(["-p", prompt], endpoint),
  resume: (prompt, endpoint, image) =>
    gemini(["-r", "latest", "-p", image === undefined ? prompt : `${prompt}\n@${image}`], endpoint),
  showFiles: calls("read_file", "file_path"),
  showImage: (path) => call("read_file", { file_path: path }),
};

function gemini(args: string[], { url, key, model }: Endpoint): AgentCall {
  return {
    args: ["--yolo", "--skip-trust", "-m", model, ...args],
    env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key },
  };
}

/** All tested agents. */
export const AGENTS: readonly Agent[] = [
  CLAUDE_CODE,
  codex("Codex", "own"),
  codex("Codex, WebSocket", "own, sockets"),
  codex("Codex, built-in provider", "built in"),
  opencode("chat", "@ai-sdk/openai-compatible", "/v1"),
  opencode("responses", "@ai-sdk/openai", "/v1"),
  opencode("messages", "@ai-sdk/anthropic", "/anthropic/v1"),
  opencode("WebSocket", "@ai-sdk/openai", "/v1"),
  QWEN_CODE,
  GEMINI_CLI,
];

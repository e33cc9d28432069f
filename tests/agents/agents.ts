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
  /** Writes its settings. */
  configure?(endpoint: Endpoint, folders: Folders): Promise<void>;
  /** A call with a prompt. */
  run(prompt: string, endpoint: Endpoint): AgentCall;
  /** A call that goes on with the last session. */
  resume(prompt: string, endpoint: Endpoint): AgentCall;
  /** A prompt that makes the echo model show a file by a tool of the agent. */
  showFile(path: string): string;
}

/** A line that makes the echo model call a tool. */
function call(tool: string, input: Readonly<Record<string, unknown>>): string {
  return `call:${tool} ${JSON.stringify(input)}`;
}

const CLAUDE_CODE: Agent = {
  name: "Claude Code",
  package: "@anthropic-ai/claude-code",
  version: "2.1.330",
  program: "claude",
  install: "install.cjs",
  run: (prompt, endpoint) => claude(["-p", prompt], endpoint),
  resume: (prompt, endpoint) => claude(["-c", "-p", prompt], endpoint),
  showFile: (path) => call("Bash", { command: `cat ${path}`, description: "Show a file" }),
};

function claude(args: string[], { url, key, model }: Endpoint): AgentCall {
  return {
    args: [...args, "--model", model, "--allowedTools", "Bash"],
    env: {
      ANTHROPIC_BASE_URL: `${url}/anthropic`,
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  };
}

/** Codex over one of its two transports. */
function codex(name: string, { sockets }: { sockets: boolean }): Agent {
  const flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
  const env = ({ key }: Endpoint) => ({ SLUICE_API_KEY: key });
  return {
    name,
    package: "@openai/codex",
    version: "0.169.0",
    program: "codex",
    async configure({ url, model }, { home }) {
      await Deno.mkdir(`${home}/.codex`, { recursive: true });
      await Deno.writeTextFile(
        `${home}/.codex/config.toml`,
        [
          `model = "${model}"`,
          'model_provider = "sluice"',
          "[model_providers.sluice]",
          'name = "Sluice"',
          `base_url = "${url}/v1"`,
          'env_key = "SLUICE_API_KEY"',
          'wire_api = "responses"',
          `supports_websockets = ${sockets}`,
          "",
        ].join("\n"),
      );
    },
    run: (prompt, endpoint) => ({ args: ["exec", ...flags, prompt], env: env(endpoint) }),
    resume: (prompt, endpoint) => ({ args: ["exec", ...flags, "resume", "--last", prompt], env: env(endpoint) }),
    showFile: (path) => call("exec_command", { cmd: `cat ${path}` }),
  };
}

/** opencode with one of the AI SDK's providers. */
function opencode(protocol: string, provider: string, base: string): Agent {
  return {
    name: `opencode, ${protocol}`,
    package: "opencode-ai",
    version: "1.18.33",
    program: "opencode",
    install: "postinstall.mjs",
    async configure({ url, key, model }, { project }) {
      const options = { baseURL: `${url}${base}`, apiKey: key };
      const id = `sluice/${model}`;
      await Deno.writeTextFile(
        `${project}/opencode.json`,
        JSON.stringify({
          ...{ autoupdate: false, share: "disabled", model: id, small_model: id },
          provider: { sluice: { npm: provider, options, models: { [model]: { attachment: true } } } },
        }),
      );
    },
    // It puts quotes around a prompt among its arguments.
    run: (input, { model }) => ({ args: ["run", "-m", `sluice/${model}`], input }),
    resume: (input, { model }) => ({ args: ["run", "-c", "-m", `sluice/${model}`], input }),
    showFile: (path) => call("read", { filePath: path }),
  };
}

const QWEN_CODE: Agent = {
  name: "Qwen Code",
  package: "@qwen-code/qwen-code",
  version: "0.24.4",
  program: "qwen",
  run: (prompt, endpoint) => qwen(["-p", prompt], endpoint),
  resume: (prompt, endpoint) => qwen(["-c", "-p", prompt], endpoint),
  showFile: (path) => call("read_file", { file_path: path }),
};

function qwen(args: string[], { url, key, model }: Endpoint): AgentCall {
  return {
    args: ["--yolo", ...args],
    env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: model },
  };
}

/** All of them. */
export const AGENTS: readonly Agent[] = [
  CLAUDE_CODE,
  codex("Codex", { sockets: false }),
  codex("Codex, WebSocket", { sockets: true }),
  opencode("chat", "@ai-sdk/openai-compatible", "/v1"),
  opencode("responses", "@ai-sdk/openai", "/v1"),
  opencode("messages", "@ai-sdk/anthropic", "/anthropic/v1"),
  QWEN_CODE,
];

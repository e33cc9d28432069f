/** Sluice as in production: a key with limits in a group with limits, the durable ledger in a SQLite file, and the log. */
import type { Protocol } from "./bodies.ts";
import { PLAYS } from "./answers.ts";
import { type Command, firstLine, type Target } from "./targets.ts";
import { V8_FLAGS } from "./v8_flags.ts";

/** Options of a Sluice target. */
export interface SluiceOptions {
  /** Name in the results. */
  name: string;
  /** A folder of its own. */
  folder: string;
  upstreamPort: number;
  /** Which requests are logged, to a file. */
  log: "all" | "none";
  /** The executable; absent: from source. */
  executable?: string;
  /** Folder of the checkout that is measured; absent: this one. */
  checkout?: string;
  /** Models besides those of the suite, as the configuration has them. */
  models?: readonly unknown[];
  /** Upstreams besides those of the suite, as the configuration has them, by name. */
  upstreams?: Readonly<Record<string, unknown>>;
  /** Additional members of the configuration. */
  config?: Readonly<Record<string, unknown>>;
  /** Variables of its environment besides the usual ones. */
  env?: Readonly<Record<string, string>>;
  /** Files that run in its process before it does. */
  preload?: readonly string[];
}

const ROOT = new URL("../../", import.meta.url).pathname.slice(0, -1);

/** Path of each protocol at Sluice. */
export const ENTRANCES = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/anthropic/v1/messages",
} as const;

/** Limits that are counted but never reached. */
const GROUP_LIMITS = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrency: 20_000 };
const LIMITS = ["--rpm", "1000000", "--tpm", "1000000000", "--concurrency", "20000"];

/** Writes configuration and key. The key is new each time. */
export async function sluice(options: SluiceOptions): Promise<Target & { key: string }> {
  const { name, folder, upstreamPort, log, executable } = options;
  const env = { ...ENV, ...options.env };
  await Deno.mkdir(`${folder}/data`, { recursive: true });
  await Deno.writeTextFile(
    `${folder}/sluice.jsonc`,
    JSON.stringify({ ...configOf(upstreamPort, options), log: { requests: log }, ...options.config }),
  );
  const { program, args } = commandOf({ ...options, preload: [] }, ["keys", "add", "bench", ...LIMITS]);
  const key = await inFolder({ program, args, cwd: folder, env });
  return {
    key,
    name,
    about: executable === undefined ? `from source, Deno ${Deno.version.deno}` : await compiledAbout(executable),
    entrance: ({ client, upstream, play }) => ({
      path: ENTRANCES[client],
      headers: {
        authorization: `Bearer ${key}`,
        ...(client === "messages" && { "anthropic-version": "2023-06-01" }),
      },
      model: `${upstream}/${play}`,
    }),
    command: (port) => ({ ...commandOf(options, ["serve", "--port", String(port)]), cwd: folder, env }),
    ...(executable !== undefined && { fileBytes: (await Deno.stat(executable)).size }),
  };
}

const ENV = {
  SLUICE_CONFIG: "",
  SLUICE_PORT: "",
  SLUICE_HOSTNAME: "",
  SLUICE_STORE: "",
  NO_COLOR: "1",
  BENCH_UPSTREAM_KEY: `sk-${"0".repeat(40)}`,
};

function commandOf({ executable, preload = [], checkout = ROOT }: SluiceOptions, args: readonly string[]): Command {
  if (executable !== undefined) return { program: executable, args };
  return {
    program: Deno.execPath(),
    args: [
      ...["run", "--quiet", "--no-check", "--no-prompt", `--v8-flags=${V8_FLAGS}`],
      ...["--config", `${checkout}/deno.json`],
      // Preloaded modules measure the process, which needs more permissions.
      ...(preload.length > 0 ? ["--allow-all"] : ["--allow-net", "--allow-env", "--allow-read", "--allow-write"]),
      ...preload.flatMap((file) => ["--preload", file]),
      `${checkout}/main.ts`,
      ...args,
    ],
  };
}

/** One upstream for each way to answer and each protocol, and a model for each of them. */
function configOf(
  upstreamPort: number,
  more: Pick<SluiceOptions, "models" | "upstreams">,
): Record<string, unknown> {
  const upstreams: Record<string, unknown> = { ...more.upstreams };
  const models: unknown[] = [];
  for (const play of PLAYS) {
    for (const protocol of ["chat", "responses", "messages"] as const) {
      upstreams[`${protocol}-${play}`] = upstreamOf(protocol, `http://127.0.0.1:${upstreamPort}/${play}`);
      models.push(modelOf(`${protocol}/${play}`, `${protocol}-${play}`));
    }
  }
  return { upstreams, models: [...models, ...more.models ?? []], groups: { default: { limits: GROUP_LIMITS } } };
}

/** A model of the catalog. */
export function modelOf(id: string, upstream: string): Record<string, unknown> {
  return {
    id,
    created: 1_760_000_000,
    context_length: 2_000_000,
    pricing: { prompt: "0.00000125", completion: "0.00001" },
    architecture: { input_modalities: ["text", "image"] },
    top_provider: { max_completion_tokens: 32_768 },
    targets: [{ upstream, model: "model-1" }],
  };
}

function upstreamOf(protocol: Protocol, origin: string): Record<string, unknown> {
  const key = { api_key: { env: "BENCH_UPSTREAM_KEY" } };
  return protocol === "messages"
    ? { vendor: "anthropic", base_url: origin, ...key }
    : { vendor: "openai-compatible", base_url: `${origin}/v1`, protocols: [protocol], ...key };
}

async function compiledAbout(executable: string): Promise<string> {
  return `one executable, ${await firstLine(executable, ["version"])}`;
}

async function inFolder({ program, args, cwd, env }: Command): Promise<string> {
  const command = new Deno.Command(program, {
    args: [...args],
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  if (code !== 0) throw new Error(`Cannot make a key: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout).trim();
}

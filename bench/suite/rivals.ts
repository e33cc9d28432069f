/** Other gateways, each installed outside the repository. The README says how. */
import { PLAYS } from "./answers.ts";
import type { Protocol } from "./bodies.ts";
import { AUTHORIZATION, firstLine, PATHS, type Target } from "./targets.ts";

/** Options of another gateway. */
export interface RivalOptions {
  /** The folder of its installation, which stays from run to run. */
  installed: string;
  /** A folder for the files of this run. */
  folder: string;
  upstreamPort: number;
}

/** Measured version. Streams of Portkey answer 500 with newer versions of its server package. */
const PORTKEY = "1.15.2";
const PORTKEY_PACKAGE = {
  private: true,
  dependencies: { "@portkey-ai/gateway": PORTKEY, node: "24.21.0" },
  overrides: { "@hono/node-server": "1.13.8" },
};

/** Portkey from npm, which is installed here if it is absent. @throws {Error} if it cannot be had */
export async function portkey({ installed, upstreamPort }: RivalOptions): Promise<Target> {
  const main = `${installed}/node_modules/@portkey-ai/gateway/build/start-server.js`;
  if (!await exists(main)) {
    await Deno.mkdir(installed, { recursive: true });
    await Deno.writeTextFile(`${installed}/package.json`, JSON.stringify(PORTKEY_PACKAGE));
    await firstLine("npm", ["install", "--no-audit", "--no-fund", "--prefix", installed]);
  }
  const own = `${installed}/node_modules/node/bin/node`;
  const node = await exists(own) ? own : "node";
  return {
    name: "portkey",
    about: `${PORTKEY} on Node ${await firstLine(node, ["--version"])}`,
    entrance({ client, upstream, play }) {
      if (upstream === "responses" || client === "responses") return undefined;
      const headers = {
        ...AUTHORIZATION,
        "x-portkey-provider": upstream === "chat" ? "openai" : "anthropic",
        "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/${play}/v1`,
      };
      return { path: `/v1/${PATHS[client]}`, headers, model: "m" };
    },
    command: (port) => ({
      program: node,
      args: [main, `--port=${port}`, "--headless"],
      env: { NODE_ENV: "production", TRUSTED_CUSTOM_HOSTS: "127.0.0.1,localhost" },
    }),
  };
}

const UPSTREAM_KEY = `sk-${"0".repeat(40)}`;

/** GoModel, which records usage in SQLite, and no bodies. @throws {Error} if it is not installed */
export async function gomodel({ installed, folder, upstreamPort }: RivalOptions): Promise<Target> {
  const program = `${installed}/gomodel`;
  if (!await exists(program)) throw new Error(`there is no ${program}`);
  const providers = PLAYS.flatMap((play) =>
    (["chat", "messages"] as const).map((protocol) => [`${protocol}-${play}`, {
      type: protocol === "chat" ? "openai" : "anthropic",
      api_key: UPSTREAM_KEY,
      base_url: `http://127.0.0.1:${upstreamPort}/${play}/v1`,
    }])
  );
  await Deno.mkdir(`${folder}/config`, { recursive: true });
  // JSON is YAML.
  await Deno.writeTextFile(
    `${folder}/config/config.yaml`,
    JSON.stringify({ providers: Object.fromEntries(providers) }),
  );
  return {
    name: "gomodel",
    about: `GoModel ${await firstLine(program, ["--version"])}`,
    entrance({ client, upstream, play }) {
      if (client === "messages" || (client === "responses" && upstream !== "responses")) return undefined;
      const provider = upstream === "messages" ? "messages" : "chat";
      return { path: `/v1/${PATHS[client]}`, headers: AUTHORIZATION, model: `${provider}-${play}/m` };
    },
    command: (port) => ({
      program,
      args: [],
      cwd: folder,
      env: { PORT: String(port), LOG_LEVEL: "warn", STORAGE_TYPE: "sqlite", SQLITE_PATH: `${folder}/gomodel.db` },
    }),
  };
}

/** LiteLLM's proxy with one worker, without a database. @throws {Error} if it is not installed */
export async function litellm({ installed, folder, upstreamPort }: RivalOptions): Promise<Target> {
  const program = `${installed}/bin/litellm`;
  if (!await exists(program)) throw new Error(`there is no ${program}`);
  const models = PLAYS.flatMap((play) => (["chat", "messages"] as const).map((protocol) => modelOf(protocol, play)));
  function modelOf(protocol: Protocol, play: string) {
    const origin = `http://127.0.0.1:${upstreamPort}/${play}`;
    return {
      model_name: `${protocol}-${play}`,
      litellm_params: protocol === "chat"
        ? { model: "openai/m", api_base: `${origin}/v1`, api_key: UPSTREAM_KEY }
        : { model: "anthropic/claude-sonnet-4-5", api_base: origin, api_key: UPSTREAM_KEY },
    };
  }
  await Deno.mkdir(folder, { recursive: true });
  // Like the other gateways, it checks no keys.
  const general_settings = { dangerously_permit_weak_or_unset_master_key: true };
  await Deno.writeTextFile(`${folder}/config.yaml`, JSON.stringify({ model_list: models, general_settings }));
  return {
    name: "litellm",
    about: await firstLine(`${installed}/bin/python`, [
      "-c",
      "import importlib.metadata as m, platform as p; print(m.version('litellm'), 'on Python', p.python_version())",
    ]),
    entrance({ client, upstream, play }) {
      const isSame = client === upstream || (client === "chat" && upstream === "messages");
      if (!isSame) return undefined;
      const model = `${upstream === "messages" ? "messages" : "chat"}-${play}`;
      return { path: `/v1/${PATHS[client]}`, headers: AUTHORIZATION, model };
    },
    command: (port) => ({
      program,
      args: ["--config", `${folder}/config.yaml`, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"],
      cwd: folder,
      // Without it LiteLLM fetches its prices from GitHub when it starts.
      env: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
    }),
  };
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).catch(() => undefined) !== undefined;
}

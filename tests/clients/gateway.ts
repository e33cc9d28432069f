/** Starts the real program in a process of its own, for clients to talk to over real sockets. */
import denoJson from "../../deno.json" with { type: "json" };

const ROOT = `${import.meta.dirname}/../..`;
/** Permissions of the program when it is started from source. */
const PERMISSIONS = denoJson.tasks.sluice.command.match(/--allow-\S+/g) ?? [];

/** Options of a gateway. */
export interface Setup {
  /** Content of its configuration file; absent: none. */
  config?: Record<string, unknown>;
  /** Secrets of keys by the group that they belong to; absent: one of the default group. */
  keys?: Readonly<Record<string, string>>;
  /** Variables that the configuration names. */
  env?: Readonly<Record<string, string>>;
}

/** A running gateway. */
export interface Gateway extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The first key. */
  readonly key: string;
  /** Ends the program. @throws if it did not exit cleanly, or logged an error */
  stop(): Promise<void>;
}

/** Starts a gateway in its own folder and waits for its address. */
export async function startGateway(
  { config, keys = { default: crypto.randomUUID() }, env }: Setup = {},
): Promise<Gateway> {
  const folder = await Deno.makeTempDir();
  const secrets = Object.entries(keys).map(([group, secret], index) => ({
    group,
    secret,
    env: `TEST_KEY_${index}`,
  }));
  const whole = { ...config, keys: secrets.map(({ group, env }) => ({ name: group, group, key: { env } })) };
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(whole));
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "--no-prompt",
      "--config",
      `${ROOT}/deno.json`,
      ...PERMISSIONS,
      `${ROOT}/main.ts`,
      "serve",
      "--port",
      "0",
    ],
    cwd: folder,
    env: {
      SLUICE_CONFIG: "",
      SLUICE_HOSTNAME: "",
      SLUICE_PORT: "",
      SLUICE_STORE: "",
      NO_COLOR: "1",
      ...env,
      ...Object.fromEntries(secrets.map(({ env, secret }) => [env, secret])),
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();

  // The rest of the output is read at the end: a pending read would look like a leak to every test in between.
  const out = child.stdout.getReader();
  async function end(): Promise<{ code: number; err: string }> {
    out.releaseLock();
    const [{ code }, err] = await Promise.all([child.status, new Response(child.stderr).text(), child.stdout.cancel()]);
    await Deno.remove(folder, { recursive: true });
    return { code, err };
  }

  const wanted = /listens on (\S+)\s/;
  const decoder = new TextDecoder();
  let banner = "";
  while (!wanted.test(banner)) {
    const { done, value } = await out.read();
    if (!done) banner += decoder.decode(value, { stream: true });
    else throw new Error(`The gateway did not start:\n${banner}${(await end()).err}`);
  }
  const [, url = ""] = wanted.exec(banner) ?? [];

  async function stop(): Promise<void> {
    child.kill("SIGTERM");
    const { code, err } = await end();
    if (code !== 0 || err.includes('"level":"error"')) throw new Error(`The gateway ended with code ${code}:\n${err}`);
  }
  return { url, key: secrets[0]?.secret ?? "", stop, [Symbol.asyncDispose]: stop };
}

/**
 * Returns what each file of tests calls for the same gateways: they start before the first test of a module, which may be
 * several files, and end after the last.
 */
export function sharedByFiles<T extends { stop(): Promise<void> }>(start: () => Promise<T>): () => () => T {
  let starting: Promise<T> | undefined;
  return () => {
    let started: T | undefined;
    Deno.test.beforeAll(async () => {
      started = await (starting ??= start());
    });
    Deno.test.afterAll(async () => {
      const ending = starting;
      starting = undefined;
      await (await ending)?.stop();
    });
    return () => {
      if (started === undefined) throw new Error("Cannot use the gateways: they have not started");
      return started;
    };
  };
}

/** One gateway for all tests of a file. */
export function sharedGateway(setup?: Setup): () => Gateway {
  return sharedByFiles(() => startGateway(setup))();
}

/** The program as Deno Deploy runs it: `deno run main.ts`, with the platform's environment and its deno.json. */
import denoJson from "../../../deno.json" with { type: "json" };
import { reservePort } from "../../support/ports.ts";
import { until } from "../../support/soon.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/**
 * Options of the runtime that the platform's version does not know: there, `request.signal` aborts after success, too.
 */
const UNKNOWN = ["no-legacy-abort"];

/** An app. */
export interface App extends AsyncDisposable {
  /** Its current folder. */
  readonly folder: string;
  /** Starts an instance. Resolves when it answers. @throws {Error} with its output if it ends before */
  start(env: Record<string, string>): Promise<Instance>;
  /** Runs one to its end. */
  run(env: Record<string, string>): Promise<{ code: number; out: string; err: string }>;
}

/** One of the isolated processes of an app. */
export interface Instance extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** Time from its start to its first answer, in milliseconds. */
  readonly startMs: number;
  /** Sends the signal; ignored by an instance that has ended. */
  kill(signal: Deno.Signal): void;
  /** Resolves with the exit code and all output. */
  readonly ended: Promise<{ code: number; out: string; err: string }>;
}

/**
 * Prepares a folder with deno.json as the platform's runtime changes it. The program stays where it is: of a copy the
 * runtime would compile each module again, at each start.
 * @param deno the runtime
 */
export async function deploy(deno: string): Promise<App> {
  const folder = await Deno.makeTempDir();
  await Deno.copyFile(`${ROOT}deno.lock`, `${folder}/deno.lock`);
  const unstable = denoJson.unstable.filter((option) => !UNKNOWN.includes(option));
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ ...denoJson, unstable }));

  function command(env: Record<string, string>): Deno.Command {
    return new Deno.Command(deno, {
      // Fewer permissions than the platform gives: no writing, no native code, no programs.
      args: [
        ...["run", "--no-prompt", "--quiet", "--allow-net", "--allow-env", "--allow-read"],
        ...["--config", `${folder}/deno.json`, `${ROOT}main.ts`],
      ],
      cwd: folder,
      clearEnv: true,
      env: { ...cacheOf(), ...PLATFORM, NO_COLOR: "1", ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
  }

  return {
    folder,
    async start(env) {
      const reserved = reservePort();
      const { port } = reserved;
      const begun = performance.now();
      const child = command({ DENO_SERVE_ADDRESS: `tcp:127.0.0.1:${port}`, ...env }).spawn();
      const ended = outputOf(child);
      const origin = `http://127.0.0.1:${port}`;
      const early = ended.then(({ out, err }) => {
        throw new Error(`The app has ended:\n${out}${err}`);
      });
      await Promise.race([answers(origin), early]);
      early.catch(() => {});
      function kill(signal: Deno.Signal): void {
        try {
          child.kill(signal);
        } catch {
          // It has ended.
        }
      }
      return {
        origin,
        startMs: performance.now() - begun,
        kill,
        ended,
        async [Symbol.asyncDispose]() {
          kill("SIGKILL");
          await ended;
          reserved[Symbol.dispose]();
        },
      };
    },
    run: (env) => outputOf(command(env).spawn()),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** Environment that the platform gives every instance. */
const PLATFORM = {
  DENO_DEPLOY: "true",
  DENO_DEPLOYMENT_ID: "4f1c0e",
  DENO_DEPLOY_APP_SLUG: "sluice",
  DENO_DEPLOY_ORG_SLUG: "acme",
  DENO_DEPLOY_BUILD_ID: "b1",
  DENO_TIMELINE: "production",
};

/** Packages are in the cache of the user that runs the tests. */
function cacheOf(): Record<string, string> {
  const names = ["HOME", "PATH", "DENO_DIR", "NPM_CONFIG_REGISTRY", "DENO_CERT", "DENO_TLS_CA_STORE"];
  return Object.fromEntries(names.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}

async function outputOf(child: Deno.ChildProcess): Promise<{ code: number; out: string; err: string }> {
  const { code, stdout, stderr } = await child.output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

async function answers(origin: string): Promise<void> {
  await until("healthy", async () => {
    const response = await fetch(`${origin}/healthz`).catch(() => undefined);
    await response?.body?.cancel();
    return response?.ok === true;
  }, 120_000);
}

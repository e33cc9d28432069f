/** Runs the real program in a process of its own, in a folder of its own. */
import { issueKey } from "../../lib/access/keys.ts";
import { openStore } from "../../lib/store/open.ts";
import { canRun, skipIf } from "./skip.ts";
import type { HostedCommand } from "./command_host.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** The end of a program. */
export interface Ended {
  code: number;
  out: string;
  err: string;
  /** Output of a command in a shared process, in order; absent for a separate process. */
  writes?: readonly { stream: "out" | "err"; text: string }[];
}

/** A running gateway with a key. */
export interface RunningWithKey extends Running {
  key: string;
}

/** A running gateway. */
export interface Running {
  /** Such as `http://127.0.0.1:40123`. */
  origin: string;
  /** Output of its start. */
  banner: string;
  pid: number;
  kill(signal: Deno.Signal): void;
  /** Resolves when it has ended; `out` is the whole of its standard output. */
  ended: Promise<Ended>;
}

/** Folder, environment and input of a program. */
export interface Place {
  folder: string;
  env?: Record<string, string>;
  /** Standard input; absent: empty. */
  input?: string;
  /** A command that runs the program, such as a tracer; absent: it is run by itself. */
  under?: readonly [string, ...string[]];
  /** Path of an executable that is run instead; absent: the program from its source. */
  executable?: string;
  /** Port of a gateway; absent: a free one. */
  port?: number;
}

/** Runs a test in a fresh folder that is removed afterwards. */
export async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs a command to its end. */
export async function run(args: readonly string[], place: Place): Promise<Ended> {
  const { folder, env = {}, input = "", under, executable } = place;
  // The runtime reads its own variables when it starts.
  const needsOwn = under !== undefined || executable !== undefined ||
    Object.keys(env).some((name) => /^DENO_/.test(name));
  if (host !== undefined && !host.isBusy && !needsOwn) {
    return await host.run({ args, folder, env: { ...OWN_VARIABLES, ...env }, input });
  }
  const child = command(args, place).spawn();
  if (place.input !== undefined) {
    const writer = child.stdin.getWriter();
    // A program that ends before it has read everything is judged by its output.
    await writer.write(new TextEncoder().encode(place.input)).catch(() => {});
    await writer.close().catch(() => {});
  }
  const { code, stdout, stderr } = await child.output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

/** A process that runs commands one after the other. */
interface Host {
  isBusy: boolean;
  run(command: HostedCommand): Promise<Ended>;
  close(): Promise<void>;
}

let host: Host | undefined;

/**
 * Starts one process that runs all commands of a test file one after the other: starting a process takes longer than
 * most commands.
 */
export function reuseProcess(): void {
  // The files of a bundle share one.
  Deno.test.beforeAll(() => void (host ??= startHost()));
  Deno.test.afterAll(async () => {
    const started = host;
    host = undefined;
    await started?.close();
  });
}

function spawnHost(stderr: "inherit" | "piped"): Deno.ChildProcess {
  const [program = "", ...args] = sourceCommand(`${ROOT}tests/support/command_host.ts`);
  return new Deno.Command(program, { args, stdin: "piped", stdout: "piped", stderr }).spawn();
}

function startHost(): Host {
  const child = spawnHost("inherit");
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader();
  return {
    isBusy: false,
    async run(command) {
      this.isBusy = true;
      await writer.write(new TextEncoder().encode(`${JSON.stringify(command)}\n`));
      const decoder = new TextDecoder();
      let line = "";
      while (!line.endsWith("\n")) {
        const { done, value } = await reader.read();
        if (done) throw new Error("The process that runs commands has ended");
        line += decoder.decode(value, { stream: true });
      }
      this.isBusy = false;
      return JSON.parse(line);
    },
    async close() {
      await writer.close();
      await reader.cancel();
      await child.status;
    },
  };
}

/** Puts a key named `default` into the store of a folder, as `sluice keys add` does. */
export async function addKey(folder: string): Promise<string> {
  const store = await openStore({ kind: "sqlite", path: `${folder}/data/sluice.db` });
  try {
    const { key, record } = issueKey({ name: "default", group: "default", now: Date.now() });
    await store.keys.add(record);
    return key;
  } finally {
    await store.close();
  }
}

/** Adds a key and starts the gateway, whose store is in the folder. */
export async function startWithKey(args: readonly string[], place: Place, starting = start): Promise<RunningWithKey> {
  const key = await addKey(place.folder);
  return { ...await starting(args, place), key };
}

/** Ends the output of a gateway in a shared process, before its exit code. */
export const END = "\0";

/** A process while it runs one gateway. */
interface GatewayProcess {
  pid: number;
  kill(signal: Deno.Signal): void;
  /** The next part of its standard output; undefined at its end. */
  read(): Promise<string | undefined>;
  /** Resolves when it has ended and its output was read. */
  finish(): Promise<{ code: number; err: string }>;
}

/** Starts the gateway and waits until it has printed how to connect. */
export function start(args: readonly string[], place: Place): Promise<Running> {
  return untilStarted(startOwn([...args, "--port", String(place.port ?? 0)], place));
}

/**
 * Starts the gateway in a process that `reuseGateways` keeps, or if none is idle in one of its own. The test ends it by
 * SIGTERM: it may not kill a process that others use.
 */
export function startReused(args: readonly string[], place: Place): Promise<Running> {
  const { folder, env = {}, port = 0 } = place;
  const idle = gateways.pop();
  if (idle === undefined) return start(args, place);
  const words = [...args, "--port", String(port)];
  return untilStarted(
    idle.begin({ args: words, folder, env: { ...OWN_VARIABLES, ...env }, input: "", isGateway: true }),
  );
}

async function untilStarted({ read, finish, pid, kill }: GatewayProcess): Promise<Running> {
  let out = "";
  async function readUntil(pattern: RegExp): Promise<boolean> {
    while (!pattern.test(out)) {
      const text = await read();
      if (text === undefined) return false;
      out += text;
    }
    return true;
  }
  if (!await readUntil(/(Others\n.*|Add a key: .*)\n\n/)) {
    throw new Error(`The gateway did not start:\n${out}${(await finish()).err}`);
  }
  const banner = out;
  return {
    origin: /listens on (\S+)/.exec(banner)?.[1] ?? "",
    banner,
    pid,
    kill,
    ended: (async () => {
      await readUntil(/$^/);
      return { ...await finish(), out };
    })(),
  };
}

function startOwn(args: readonly string[], place: Place): GatewayProcess {
  const child = command(args, place).spawn();
  const errors = new Response(child.stderr).text();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  return {
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    read: async () => (await reader.read()).value,
    finish: async () => ({ code: (await child.status).code, err: await errors }),
  };
}

/** Processes in which no gateway runs. */
const gateways: GatewayHost[] = [];

/**
 * Starts processes in which the gateways of a test file run one after the other: starting a process takes a second of
 * CPU time.
 */
export function reuseGateways(count = 1): void {
  const own: GatewayHost[] = [];
  Deno.test.beforeAll(() => {
    // The files of a bundle share them.
    while (own.length + gateways.length < count) own.push(new GatewayHost());
    gateways.push(...own);
  });
  Deno.test.afterAll(async () => {
    gateways.length = 0;
    await Promise.all(own.map((host) => host.close()));
  });
}

/** A process that runs gateways one after the other. */
class GatewayHost {
  readonly #child = spawnHost("piped");
  readonly #input = this.#child.stdin.getWriter();
  readonly #out = this.#child.stdout.getReader();
  readonly #err = this.#child.stderr.getReader();

  begin(command: HostedCommand): GatewayProcess {
    let code: number | undefined;
    const decoder = new TextDecoder();
    const readOut = async () => {
      if (code !== undefined) return undefined;
      const part = await this.#read(this.#out, decoder);
      code = part?.code;
      return part?.text;
    };
    const writing = this.#input.write(new TextEncoder().encode(`${JSON.stringify(command)}\n`));
    const errors = this.#readToEnd();
    let isOver = false;
    return {
      pid: this.#child.pid,
      kill: (signal) => {
        if (isOver) throw new TypeError("The gateway has ended");
        this.#child.kill(signal);
      },
      read: readOut,
      finish: async () => {
        const err = await errors;
        await writing;
        isOver = true;
        if (code === undefined) return { code: (await this.#child.status).code, err };
        gateways.push(this);
        return { code, err };
      },
    };
  }

  /** Reads a part of the output. At the end of a gateway it has a code, at that of the process it is undefined. */
  async #read(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    decoder: TextDecoder,
  ): Promise<{ text: string; code?: number } | undefined> {
    let text = "";
    // Output is not read ahead: a pending read would look like a leak to the following tests.
    do {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += decoder.decode(value, { stream: true });
    } while (text.includes(END) && !text.endsWith("\n"));
    const [output = "", code] = text.split(END);
    return { text: output, ...(code !== undefined && { code: Number(code) }) };
  }

  async #readToEnd(): Promise<string> {
    let err = "";
    for (const decoder = new TextDecoder();;) {
      const part = await this.#read(this.#err, decoder);
      err += part?.text ?? "";
      if (part === undefined || part.code !== undefined) return err;
    }
  }

  async close(): Promise<void> {
    // It may have been killed.
    await this.#input.close().catch(() => {});
    await Promise.all([this.#out.cancel(), this.#err.cancel(), this.#child.status]);
  }
}

/** True if `script` of util-linux is installed, which gives a program a terminal: other versions lack `-e`. */
export const HAS_TERMINAL = !skipIf(
  Deno.build.os !== "linux" || !await canRun("script", "-qec", "true", "/dev/null"),
  "script (util-linux) is not installed",
);

/** Starts the gateway at a terminal, with its log in a file. `interrupt` is Ctrl-C. */
export async function startAtTerminal(
  folder: string,
): Promise<Pick<Running, "origin" | "banner"> & { interrupt(): Promise<{ code: number }> }> {
  const words = [...sourceCommand(), "--port", "0"].map((word) => `'${word}'`).join(" ");
  const child = new Deno.Command("script", {
    args: ["-qfec", `exec ${words} 2> '${folder}/log'`, "/dev/null"],
    cwd: folder,
    env: OWN_VARIABLES,
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let banner = "";
  while (!/Others\r?\n.*\n\r?\n/.test(banner)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`The gateway did not start:\n${banner}${await Deno.readTextFile(`${folder}/log`)}`);
    banner += value.replaceAll("\r\n", "\n");
  }
  return {
    origin: /listens on (\S+)/.exec(banner)?.[1] ?? "",
    banner,
    async interrupt() {
      const writer = child.stdin.getWriter();
      await writer.write(new Uint8Array([3]));
      while (!(await reader.read()).done);
      const { code } = await child.status;
      await writer.close().catch(() => {});
      return { code };
    },
  };
}

/** The configuration is that of the folder. */
const OWN_VARIABLES = {
  JOURNAL_STREAM: "",
  container: "",
  SLUICE_CONFIG: "",
  SLUICE_PORT: "",
  SLUICE_HOSTNAME: "",
  SLUICE_STORE: "",
  NO_COLOR: "1",
};

function sourceCommand(entry = `${ROOT}main.ts`): string[] {
  const permissions = ["--allow-net", "--allow-env", "--allow-read", "--allow-write"];
  return [
    Deno.execPath(),
    "run",
    "--quiet",
    "--no-check",
    "--no-prompt",
    "--config",
    `${ROOT}deno.json`,
    ...permissions,
    entry,
  ];
}

function command(args: readonly string[], { folder, env = {}, input, under, executable }: Place): Deno.Command {
  const [program = "", ...before] = [...under ?? [], ...(executable === undefined ? sourceCommand() : [executable])];
  return new Deno.Command(program, {
    args: [...before, ...args],
    cwd: folder,
    env: { ...OWN_VARIABLES, ...env },
    stdin: input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  });
}

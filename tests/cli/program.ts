/** Runs the real program in a process of its own, in a folder of its own. */
const ROOT = new URL("../../", import.meta.url).pathname;

/** How a program ended. */
export interface Ended {
  code: number;
  out: string;
  err: string;
}

/** A running gateway. */
export interface Running {
  /** Such as `http://127.0.0.1:40123`. */
  origin: string;
  /** What it printed when it started. */
  banner: string;
  pid: number;
  kill(signal: Deno.Signal): void;
  /** Resolves when it has ended; `out` is the whole of its standard output. */
  ended: Promise<Ended>;
}

/** Where and with what a program runs. */
export interface Place {
  folder: string;
  env?: Record<string, string>;
  /** What is on standard input; absent: nothing. */
  input?: string;
  /** A command that runs the program, such as a tracer; absent: it is run by itself. */
  under?: readonly [string, ...string[]];
  /** Path of an executable that is run instead; absent: the program from its source. */
  executable?: string;
  /** Where a gateway listens; absent: on a free port. */
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
  const child = command(args, place).spawn();
  if (place.input !== undefined) {
    const writer = child.stdin.getWriter();
    // A program that ends before it has read everything is judged by what it said.
    await writer.write(new TextEncoder().encode(place.input)).catch(() => {});
    await writer.close().catch(() => {});
  }
  const { code, stdout, stderr } = await child.output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

/** Starts the gateway and waits until it has told how to connect. */
export async function start(args: readonly string[], place: Place): Promise<Running> {
  const child = command([...args, "--port", String(place.port ?? 0)], place).spawn();
  const errors = new Response(child.stderr).text();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let out = "";
  async function readUntil(pattern: RegExp): Promise<boolean> {
    while (!pattern.test(out)) {
      const { done, value } = await reader.read();
      if (done) return false;
      out += value;
    }
    return true;
  }
  if (!await readUntil(/(Others\n.*|Another one: .*)\n\n/)) {
    await child.status;
    throw new Error(`The gateway did not start:\n${out}${await errors}`);
  }
  const banner = out;
  return {
    origin: /listens on (\S+)/.exec(banner)?.[1] ?? "",
    banner,
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    ended: (async () => {
      await readUntil(/$^/);
      return { code: (await child.status).code, out, err: await errors };
    })(),
  };
}

function command(args: readonly string[], { folder, env = {}, input, under, executable }: Place): Deno.Command {
  const permissions = ["--allow-net", "--allow-env", "--allow-read", "--allow-write"];
  const source = [
    Deno.execPath(),
    "run",
    "--quiet",
    "--no-check",
    "--no-prompt",
    "--config",
    `${ROOT}deno.json`,
    ...permissions,
    `${ROOT}main.ts`,
  ];
  const [program = "", ...before] = [...under ?? [], ...(executable === undefined ? source : [executable])];
  return new Deno.Command(program, {
    args: [...before, ...args],
    cwd: folder,
    env: { SLUICE_CONFIG: "", SLUICE_PORT: "", SLUICE_HOSTNAME: "", SLUICE_STORE: "", NO_COLOR: "1", ...env },
    stdin: input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  });
}

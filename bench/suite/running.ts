/** Starts targets and stops them. */
import type { Entrance, Target } from "./targets.ts";
import { requestBytes, send } from "./messages.ts";
import { family } from "./proc.ts";
import { inTime, type Pinned, pinning } from "./peer.ts";

/** A running target. */
export interface Running {
  target: Target;
  pid: number;
  port: number;
  /** From the start of its process to the end of its first answer, in milliseconds. */
  startMs: number;
  stop(): Promise<void>;
}

/** Longest time for a start, and time between two tries, in milliseconds. */
const PATIENCE_MS = 90_000;
const TRY_MS = 2;

/** Returns a free port. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Starts a target and waits for its first answer to `body`. @throws {Error} if none comes */
export async function startTarget(
  target: Target,
  { core, upstream, entrance, body, errors }: Pinned & {
    upstream: { pid: number; port: number };
    entrance: Entrance;
    body: string;
    /** File that its standard error goes to. */
    errors: string;
  },
): Promise<Running> {
  if (target.command === undefined) {
    return { target, ...upstream, startMs: 0, stop: () => Promise.resolve() };
  }
  const port = freePort();
  const { program, args, cwd, env } = await target.command(port);
  const [first = "", ...rest] = [...pinning({ ...(core !== undefined && { core }) }), program, ...args];
  const begin = performance.now();
  const child = new Deno.Command(first, {
    args: rest,
    ...(cwd !== undefined && { cwd }),
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const file = await Deno.open(errors, { write: true, create: true, truncate: true });
  const written = child.stderr.pipeTo(file.writable);
  let isOver = false;
  child.status.then(() => isOver = true);
  const stop = async () => {
    const pids = await family(child.pid);
    for (const pid of pids) endProcess(pid, "SIGTERM");
    await inTime(child.status, "", 5_000).catch(() => pids.forEach((pid) => endProcess(pid, "SIGKILL")));
    await child.status;
    await written.catch(() => {});
  };
  const headers = { connection: "close", "content-type": "application/json", ...entrance.headers };
  const request = requestBytes({ path: entrance.path, headers, body });
  while (!await answers(port, request)) {
    if (isOver || performance.now() - begin > PATIENCE_MS) {
      await stop();
      throw new Error(`Cannot start ${target.name}: ${(await Deno.readTextFile(errors)).slice(0, 1000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, TRY_MS));
  }
  return { target, pid: child.pid, port, startMs: performance.now() - begin, stop };
}

async function answers(port: number, request: Uint8Array): Promise<boolean> {
  try {
    using socket = await Deno.connect({ hostname: "127.0.0.1", port });
    await send(socket, request);
    const buffer = new Uint8Array(64 * 1024);
    let text = "";
    for (let read = await socket.read(buffer); read !== null; read = await socket.read(buffer)) {
      text += new TextDecoder().decode(buffer.subarray(0, read));
    }
    return text.startsWith("HTTP/1.1 200");
  } catch {
    return false;
  }
}

function endProcess(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // The process has already ended.
  }
}

/** Calls over one transport for `transports.ts`, in a process of their own: a job per input line, its cost per output line. */
import process from "node:process";
import { createHttp1Transport } from "../lib/upstreams/select_transport.ts";
import { createFetchTransport } from "../lib/upstreams/fetch_transport.ts";
import type { Play } from "./suite/answers.ts";
import { bodyOf, type Size } from "./suite/bodies.ts";
import { connect, type Connection, requestBytes, send } from "./suite/messages.ts";
import { answerLines } from "./suite/peer.ts";
import { AUTHORIZATION } from "./suite/targets.ts";

/** A job: a number of calls, some of them concurrent. */
export interface Job {
  play: Play;
  size: Size;
  calls: number;
  atOnce: number;
  /** Pause between two calls of a lane, in milliseconds. */
  pauseMs?: number;
}

/** Cost of a job. */
export interface Cost {
  /** CPU time of this process, in microseconds. */
  cpuUs: number;
  /** Median time of a call, in microseconds. */
  p50Us: number;
  /** Growth of the resident set, in bytes. */
  rssBytes: number;
}

/** Makes a call. A slow stream stays open after its first event. */
type CallOnce = (play: Play, body: string) => Promise<void>;

const PATH = "v1/chat/completions";
const HEADERS = { "content-type": "application/json", accept: "application/json", ...AUTHORIZATION };
const LIMITS = { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 };
/** Open streams, whose memory is measured. */
const held: unknown[] = [];

function overTransport(kind: "fetch" | "http1", port: number): CallOnce {
  const transport = kind === "fetch" ? createFetchTransport() : createHttp1Transport();
  return async (play, body) => {
    const { signal } = new AbortController();
    const url = `http://127.0.0.1:${port}/${play}/${PATH}`;
    const incoming = await transport.send({ url, headers: HEADERS, body, signal, limits: LIMITS });
    if (play.startsWith("json")) return void (await incoming.text(1_000_000));
    while (await incoming.read() !== undefined) {
      if (play === "slow") return void held.push(incoming);
    }
  };
}

/** The lower bound: sockets, prepared bytes and a byte count. */
function overSockets(port: number): CallOnce {
  const idle: Connection[] = [];
  const requests = new Map<string, Uint8Array>();
  return async (play, body) => {
    const key = play + body.length;
    const bytes = requests.get(key) ?? requestBytes({ path: `/${play}/${PATH}`, headers: HEADERS, body });
    requests.set(key, bytes);
    const connection = idle.pop() ?? await connect(port, 64 * 1024);
    await send(connection.socket, bytes);
    await connection.reader.next({ first: play === "slow" });
    (play === "slow" ? held : idle).push(connection);
  };
}

async function run(call: CallOnce, { play, size, calls, atOnce, pauseMs }: Job): Promise<Cost> {
  const body = bodyOf({ protocol: "chat", size, model: "m", stream: !play.startsWith("json") });
  const times: number[] = [];
  let left = calls;
  const rssBefore = Deno.memoryUsage().rss;
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (left-- > 0) {
      const started = performance.now();
      await call(play, body);
      times.push(performance.now() - started);
      if (pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }));
  const { user, system } = process.cpuUsage(before);
  times.sort((a, b) => a - b);
  return {
    cpuUs: user + system,
    p50Us: (times[times.length >> 1] ?? 0) * 1000,
    rssBytes: Deno.memoryUsage().rss - rssBefore,
  };
}

if (import.meta.main) {
  let call: CallOnce | undefined;
  await answerLines(async (line) => {
    const { name, port, ...job } = JSON.parse(line);
    call ??= name === "sockets" ? overSockets(port) : overTransport(name, port);
    return await run(call, job);
  });
}

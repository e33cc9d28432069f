// deno-lint-ignore-file no-console
/** One transport of `transports.ts` in its own process: each input line is a job, each output line its cost. */
import process from "node:process";
import { createHttp1Transport } from "../lib/upstreams/select_transport.ts";
import { createFetchTransport } from "../lib/upstreams/fetch_transport.ts";
import type { Transport } from "../lib/upstreams/transport.ts";
import { BODIES } from "./transports_answers.ts";
import { createNodeTransport } from "./transports_node.ts";

/** A job: a number of calls, some of them concurrent. */
export interface Job {
  path: string;
  body: keyof typeof BODIES;
  calls: number;
  atOnce: number;
  /** Pause between two calls of a lane, in milliseconds. */
  pauseMs?: number;
  /** True: the streams stay open after their first event, and their memory is measured. */
  holds?: boolean;
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

type CallOnce = (path: string, body: string) => Promise<void>;

const HEADERS = {
  "content-type": "application/json",
  accept: "application/json",
  authorization: `Bearer sk-${"0".repeat(40)}`,
};
const LIMITS = { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 };

function overTransport(transport: Transport, url: string, held: unknown[]): CallOnce {
  return async (path, body) => {
    const { signal } = new AbortController();
    const incoming = await transport.send({ url: url + path, headers: HEADERS, body, signal, limits: LIMITS });
    if (path.startsWith("/json")) return void (await incoming.text(1_000_000));
    if (path === "/slow") {
      await incoming.read();
      held.push(incoming);
      return;
    }
    while (await incoming.read() !== undefined);
  };
}

/** The floor: sockets, prepared bytes and a byte count. */
function overSockets(url: string, held: unknown[]): CallOnce {
  const { hostname, port } = new URL(url);
  const idle: { socket: Deno.TcpConn; buffer: Uint8Array }[] = [];
  const requests = new Map<string, Uint8Array>();
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  return async (path, body) => {
    const key = path + body.length;
    const headers = Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const bytes = requests.get(key) ??
      encoder.encode(
        `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`,
      );
    requests.set(key, bytes);
    const connection = idle.pop() ?? {
      socket: await Deno.connect({ hostname, port: Number(port) }),
      buffer: new Uint8Array(64 * 1024),
    };
    const { socket, buffer } = connection;
    for (let at = 0; at < bytes.length;) at += await socket.write(bytes.subarray(at));
    let size = await socket.read(buffer) ?? 0;
    if (path.startsWith("/json")) {
      const text = decoder.decode(buffer.subarray(0, 300));
      const responseEnd = text.indexOf("\r\n\r\n") + 4 + Number(/content-length: (\d+)/.exec(text)?.[1]);
      while (size < responseEnd) size += await socket.read(buffer) ?? responseEnd;
    } else if (path === "/slow") {
      held.push(connection);
      return;
    } else {
      while (!isEnd(buffer, size)) size = await socket.read(buffer) ?? 0;
    }
    idle.push(connection);
  };
}

/** The last bytes of every stream are the same; they may come by themselves. */
function isEnd(buffer: Uint8Array, size: number): boolean {
  return buffer[size - 5] === 48 && (size === 5 || buffer[size - 6] === 10);
}

async function run(call: CallOnce, { path, body, calls, atOnce, pauseMs, holds }: Job): Promise<Cost> {
  const times: number[] = [];
  let left = calls;
  const rssBefore = Deno.memoryUsage().rss;
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (left-- > 0) {
      const started = performance.now();
      await call(path, BODIES[body]);
      times.push(performance.now() - started);
      if (pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }));
  const { user, system } = process.cpuUsage(before);
  if (holds === true) await new Promise((resolve) => setTimeout(resolve, 1_000));
  times.sort((a, b) => a - b);
  return {
    cpuUs: user + system,
    p50Us: (times[times.length >> 1] ?? 0) * 1000,
    rssBytes: Deno.memoryUsage().rss - rssBefore,
  };
}

async function main([name = "", url = ""]: readonly string[]): Promise<void> {
  const held: unknown[] = [];
  const create = { fetch: createFetchTransport, node: createNodeTransport, http1: createHttp1Transport }[name];
  const call = create === undefined ? overSockets(url, held) : overTransport(create(), url, held);
  const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream());
  let text = "";
  for await (const piece of lines) {
    text += piece;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const job: Job = JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
      console.log(JSON.stringify(await run(call, job)));
    }
  }
}

if (import.meta.main) {
  await main(Deno.args);
  Deno.exit(0);
}

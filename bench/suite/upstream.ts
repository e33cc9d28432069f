/**
 * The upstream of the benchmark, in its own process: prepared bytes over bare sockets. The first part of the path
 * selects the answer, the last the protocol. Its first line of output is its port.
 */
import {
  BURST_EVENTS,
  FIRST_EVENTS,
  FIRST_PAUSE_MS,
  PACE_MS,
  PACED_EVENTS,
  type Play,
  PLAYS,
  SLOW_MS,
  type StreamParts,
  streamParts,
  TIME_MARK,
  wallUs,
  wholeAnswer,
} from "./answers.ts";
import type { Protocol } from "./bodies.ts";
import { MessageReader, send } from "./messages.ts";
import { PATHS } from "./targets.ts";

/** Answers a request on a connection. Resolves when everything is sent. */
type Player = (socket: Deno.TcpConn) => Promise<void>;

const encoder = new TextEncoder();

function playerOf(play: Play, protocol: Protocol): Player {
  const { opening, event, closing } = streamParts(protocol);
  const parts = [opening, event, closing].map((part) => encoder.encode(part)) as [Uint8Array, Uint8Array, Uint8Array];
  switch (play) {
    case "json":
      return all(wholeAnswer(protocol, 600));
    case "json60":
      return all(wholeAnswer(protocol, 60_000));
    case "burst":
      return all(opening + event.repeat(BURST_EVENTS) + closing);
    case "paced":
      return paced(parts, { events: PACED_EVENTS, everyMs: PACE_MS });
    case "timed":
      return timed(streamParts(protocol, TIME_MARK));
    case "slow":
      return paced(parts, { events: Infinity, everyMs: SLOW_MS });
    case "first": {
      const [begin, rest] = [opening + event, event.repeat(FIRST_EVENTS - 1) + closing].map((text) =>
        encoder.encode(text)
      ) as [Uint8Array, Uint8Array];
      return async (socket) => {
        await send(socket, begin);
        await pause(FIRST_PAUSE_MS);
        await send(socket, rest);
      };
    }
  }
}

function all(text: string): Player {
  const bytes = encoder.encode(text);
  return (socket) => send(socket, bytes);
}

function paced(
  [opening, event, closing]: readonly [Uint8Array, Uint8Array, Uint8Array],
  { events, everyMs }: { events: number; everyMs: number },
): Player {
  return async (socket) => {
    await send(socket, opening);
    await send(socket, event);
    // The next timer compensates for a late one.
    const begin = performance.now();
    for (let count = 1; count < events; count++) {
      await pause(begin + count * everyMs - performance.now());
      await send(socket, event);
    }
    await send(socket, closing);
  };
}

/** Paced events that carry the time of their sending. */
function timed({ opening, event, closing }: StreamParts): Player {
  return async (socket) => {
    await send(socket, encoder.encode(opening));
    const bytes = encoder.encode(event);
    const at = event.indexOf(TIME_MARK) + 1;
    const begin = performance.now();
    for (let count = 0; count < PACED_EVENTS; count++) {
      await pause(begin + count * PACE_MS - performance.now());
      encoder.encodeInto(String(wallUs()), bytes.subarray(at));
      await send(socket, bytes);
    }
    await send(socket, encoder.encode(closing));
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}

async function serve(socket: Deno.TcpConn, players: ReadonlyMap<string, Player>): Promise<void> {
  socket.setNoDelay(true);
  const reader = new MessageReader(socket, 64 * 1024);
  while (true) {
    const message = await reader.next();
    if (message === undefined) return;
    const path = /^\S+ \/(\S*?)(?:\?\S*)? HTTP/.exec(message.head)?.[1] ?? "";
    const player = players.get(path);
    if (player === undefined) await send(socket, encoder.encode(NOT_FOUND));
    else await player(socket);
  }
}

/** A list of models in the forms of OpenAI and Anthropic, for gateways that ask for one. */
const MODEL_LIST = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", type: "model", display_name: "m", created_at: "2025-10-09T08:53:20Z" }],
  has_more: false,
});
const MODELS =
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${MODEL_LIST.length}\r\n\r\n${MODEL_LIST}`;
const NOT_FOUND = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

async function main(): Promise<void> {
  const players = new Map<string, Player>();
  for (const play of PLAYS) {
    players.set(`${play}/v1/models`, all(MODELS));
    for (const [protocol, path] of Object.entries(PATHS) as [Protocol, string][]) {
      players.set(`${play}/v1/${path}`, playerOf(play, protocol));
    }
  }
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  // deno-lint-ignore no-console -- what the suite waits for
  console.log(listener.addr.port);
  for await (const socket of listener) {
    // A client may disconnect within a stream.
    serve(socket, players).catch(() => {}).finally(() => {
      try {
        socket.close();
      } catch {
        // It is closed already.
      }
    });
  }
}

if (import.meta.main) await main();

/**
 * An upstream over bare sockets, in a process of its own: each request gets a stream of the Messages protocol with
 * consecutive numbers every few seconds, until a command ends them all. Its first output line is its port; `status` and
 * `end` are answered with its counts.
 */
import { streamParts } from "../../../bench/suite/answers.ts";
import { MessageReader, send } from "../../../bench/suite/messages.ts";
import { answerLines, writeLine } from "../../../bench/suite/peer.ts";
import { stamp } from "./stamp.ts";

/** Counts of an upstream. */
export interface StreamCounts {
  /** Streams that are under way. */
  open: number;
  /** Numbers written to all streams. */
  events: number;
  /** Streams written to their end. */
  ended: number;
  /** Streams whose reader left before their end. */
  broken: number;
}

/** Time between two numbers of a stream, in milliseconds. */
const EVERY_MS = 4_000;
/** Time over which all streams end, in milliseconds. */
const ENDING_MS = 5_000;

const encoder = new TextEncoder();
const { opening } = streamParts("messages");
const counts: StreamCounts = { open: 0, events: 0, ended: 0, broken: 0 };
const open = new Set<{ end(): void }>();

function event(type: string, rest: object): Uint8Array {
  const text = `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
  return encoder.encode(`${text.length.toString(16)}\r\n${text}\r\n`);
}

function closing(events: number): Uint8Array[] {
  return [
    event("content_block_stop", { index: 0 }),
    event("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: events },
    }),
    event("message_stop", {}),
    encoder.encode("0\r\n\r\n"),
  ];
}

async function stream(socket: Deno.TcpConn): Promise<void> {
  let isOver = false;
  let wake = () => {};
  const one = {
    end() {
      isOver = true;
      wake();
    },
  };
  open.add(one);
  counts.open++;
  try {
    await send(socket, encoder.encode(opening));
    let count = 0;
    for (let next = performance.now(); !isOver; next += EVERY_MS) {
      const delta = { type: "text_delta", text: `${count}:${stamp().toFixed(1)} ` };
      await send(socket, event("content_block_delta", { index: 0, delta }));
      count++;
      counts.events++;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, next + EVERY_MS - performance.now()));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const bytes of closing(count)) await send(socket, bytes);
    counts.ended++;
  } catch (error) {
    counts.broken++;
    throw error;
  } finally {
    open.delete(one);
    counts.open--;
  }
}

async function serve(socket: Deno.TcpConn): Promise<void> {
  socket.setNoDelay(true);
  const reader = new MessageReader(socket, 8 * 1024);
  while (await reader.next() !== undefined) await stream(socket);
}

async function endAll(): Promise<void> {
  const all = [...open];
  for (const [index, one] of all.entries()) {
    one.end();
    if (index % 100 === 99) await new Promise((resolve) => setTimeout(resolve, ENDING_MS * 100 / all.length));
  }
}

if (import.meta.main) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 4096 });
  await writeLine(listener.addr.port);
  (async () => {
    for await (const socket of listener) {
      serve(socket).catch(() => {}).finally(() => {
        try {
          socket.close();
        } catch {
          // It is closed already.
        }
      });
    }
  })();
  await answerLines(async (line) => {
    if (line === "end") await endAll();
    return counts;
  });
  Deno.exit(0);
}

/**
 * An upstream over bare sockets, in a process of its own, that speaks Chat: `/quick/v1/…` gets a short answer at once,
 * `/words/v1/…` and `/padded/v1/…` more than any buffer holds, as fast as it is read: of words, or of few words in
 * large padded events, which need no counting. Its first output line is its port.
 */
import { streamParts, wholeAnswer } from "../../../bench/suite/answers.ts";
import { MessageReader, send } from "../../../bench/suite/messages.ts";
import { writeLine } from "../../../bench/suite/peer.ts";

/** Words of one event, each one token, its padding in characters, and events of a stream. */
const PLAYS = { words: { words: 1_600, padding: 0 }, padded: { words: 1, padding: 8_000 } };
const EVENTS = 2_000;

const encoder = new TextEncoder();
const QUICK = encoder.encode(wholeAnswer("chat", 600));
const [OPENING, CLOSING] = (({ opening, closing }) => [encoder.encode(opening), encoder.encode(closing)] as const)(
  streamParts("chat"),
);
const EVENT_OF = new Map(
  Object.entries(PLAYS).map(([name, play]) => [name, eventOf(play)]),
);

/** Padded as by some vendors, so that the length of an event reveals nothing. */
function eventOf({ words, padding }: { words: number; padding: number }): Uint8Array {
  const choices = [{ index: 0, delta: { content: " word".repeat(words) }, finish_reason: null }];
  const event = { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices };
  const text = `data: ${JSON.stringify({ ...event, obfuscation: "x".repeat(padding) })}\n\n`;
  return encoder.encode(`${text.length.toString(16)}\r\n${text}\r\n`);
}

async function serve(socket: Deno.TcpConn): Promise<void> {
  socket.setNoDelay(true);
  const reader = new MessageReader(socket, 64 * 1024);
  for (let message = await reader.next(); message !== undefined; message = await reader.next()) {
    const event = EVENT_OF.get(/^POST \/(\w+)\//.exec(message.head)?.[1] ?? "");
    if (event === undefined) {
      await send(socket, QUICK);
      continue;
    }
    await send(socket, OPENING);
    for (let count = 0; count < EVENTS; count++) await send(socket, event);
    await send(socket, CLOSING);
  }
}

if (import.meta.main) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  await writeLine(listener.addr.port);
  for await (const socket of listener) {
    // Clients that disconnect within a stream are ignored.
    serve(socket).catch(() => {}).finally(() => {
      try {
        socket.close();
      } catch {
        // It is closed already.
      }
    });
  }
}

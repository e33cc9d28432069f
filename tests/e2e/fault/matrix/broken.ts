/** Ways in which an answer breaks. */
import type { FaultConnection } from "../../../../lib/fault/connection.ts";
import { changed, type Said, streamOf } from "./said.ts";
import type { Play, Then } from "./wire.ts";
import { begin, chunk, chunks, END, head, send, sendWhole, typeOf } from "./written.ts";

/** Pieces of text before a fault in the middle. */
export const SOME = 3;

/** Longest time that a client has to read them, in milliseconds. */
const READ_MS = 5_000;

/** The stream up to its middle, or the first half of a whole answer that announced its length. */
export async function half(line: FaultConnection, said: Said): Promise<void> {
  if (said.stream) {
    await chunks(line, [...said.opening, ...said.pieces.slice(0, SOME)], begin(said));
    return await untilRead(line, said);
  }
  const length = new TextEncoder().encode(said.whole).length;
  await line.send(
    head(typeOf(said), { "content-length": String(length) }) + said.whole.slice(0, said.whole.length / 2),
  );
}

/** Waits until the client has read what came before the fault: a client that has read nothing gets a status instead. */
async function untilRead(line: FaultConnection, { read }: Said): Promise<void> {
  const late = line.wait(READ_MS);
  // The caller is still informed by the returned promise.
  late.catch(() => {});
  await Promise.race([read, late]);
}

/** Some of the answer, and then this. A whole answer is broken in the same way. */
export const then = (finish: (line: FaultConnection, said: Said) => Promise<Then>): Play => async (line, said) => {
  await half(line, said);
  return await finish(line, said);
};

/** A stream with this in its middle, properly framed and ended by the connection; a whole answer with this body. */
export const inTheMiddle =
  (wire: (said: Said) => string | Uint8Array, whole: (said: Said) => string | Uint8Array): Play =>
  async (
    line,
    said,
  ) => {
    if (!said.stream) return await sendWhole(line, whole(said), { headers: typeOf(said) });
    await half(line, said);
    await chunk(line, wire(said));
    await line.send(END);
    return "keep";
  };

/** A complete, well-formed answer with changed text. */
export const soundly = (change: (text: string, said: Said) => string): Play => (line, said) =>
  send(line, changed(said, (text) => change(text, said)));

/** A valid answer, with other bytes for its head. */
export const withHead =
  (lines: string, more: string | ((body: string) => string) = (body) => body): Play => async (line, said) => {
    const body = said.stream ? streamOf(said) : said.whole;
    const length = new TextEncoder().encode(body).length;
    await line.send(
      `${lines.replaceAll("TYPE", typeOf(said)["content-type"]).replaceAll("LENGTH", String(length))}\r\n`,
    );
    await line.send(typeof more === "string" ? more : more(body));
    return "close";
  };

/** Nothing more, and no end. */
export const never = async (line: FaultConnection): Promise<Then> => {
  await line.wait();
  return "close";
};

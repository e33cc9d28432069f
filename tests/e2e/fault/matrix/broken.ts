/** Ways in which an answer breaks. */
import type { FaultConnection } from "../../../../lib/fault/connection.ts";
import { changed, type SoundAnswer, streamOf } from "./sound_answer.ts";
import type { Play, Then } from "./wire.ts";
import { begin, chunk, chunks, END, head, send, sendWhole, typeOf } from "./written.ts";

/** Pieces of text before a fault in the middle. */
export const SOME = 3;

/** The stream up to its middle, or the first half of a whole answer that announced its length. */
export async function half(line: FaultConnection, answer: SoundAnswer): Promise<void> {
  if (answer.stream) {
    await chunks(line, [...answer.opening, ...answer.pieces.slice(0, SOME)], begin(answer));
    return await untilRead(line, answer);
  }
  const length = new TextEncoder().encode(answer.whole).length;
  await line.send(
    head(typeOf(answer), { "content-length": String(length) }) + answer.whole.slice(0, answer.whole.length / 2),
  );
}

/** Waits until the client has read some of what came before the fault, or has gone: a client that has read nothing gets a status instead. */
async function untilRead(line: FaultConnection, { read }: SoundAnswer): Promise<void> {
  const gone = line.wait();
  // The caller is still informed by the returned promise.
  gone.catch(() => {});
  await Promise.race([read, gone]);
}

/** A part of the answer, then the fault. A whole answer is broken in the same way. */
export const then =
  (finish: (line: FaultConnection, answer: SoundAnswer) => Promise<Then>): Play => async (line, answer) => {
    await half(line, answer);
    return await finish(line, answer);
  };

/** A stream with this in its middle, properly framed and ended by the connection; a whole answer with this body. */
export const inTheMiddle =
  (wire: (answer: SoundAnswer) => string | Uint8Array, whole: (answer: SoundAnswer) => string | Uint8Array): Play =>
  async (
    line,
    answer,
  ) => {
    if (!answer.stream) return await sendWhole(line, whole(answer), { headers: typeOf(answer) });
    await half(line, answer);
    await chunk(line, wire(answer));
    await line.send(END);
    return "keep";
  };

/** A complete, well-formed answer with changed text. */
export const soundly = (change: (text: string, answer: SoundAnswer) => string): Play => (line, answer) =>
  send(line, changed(answer, (text) => change(text, answer)));

/** A valid answer, with other bytes for its head. */
export const withHead =
  (lines: string, more: string | ((body: string) => string) = (body) => body): Play => async (line, answer) => {
    const body = answer.stream ? streamOf(answer) : answer.whole;
    const length = new TextEncoder().encode(body).length;
    await line.send(
      `${lines.replaceAll("TYPE", typeOf(answer)["content-type"]).replaceAll("LENGTH", String(length))}\r\n`,
    );
    await line.send(typeof more === "string" ? more : more(body));
    return "close";
  };

/** Neither more data nor the end. */
export const never = async (line: FaultConnection): Promise<Then> => {
  await line.wait();
  return "close";
};

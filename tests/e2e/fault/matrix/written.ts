/** Answers as bytes: heads, chunks and floods. */
import type { FaultConnection } from "../../../../lib/fault/connection.ts";
import type { SoundAnswer } from "./sound_answer.ts";
import type { Then } from "./wire.ts";

/** The last chunk of a body. */
export const END = "0\r\n\r\n";

/** Bytes per write of large answers. */
const BLOCK = 64 * 1024;

const encoder = new TextEncoder();

/** The type that an answer of this kind has. */
export function typeOf({ stream }: Pick<SoundAnswer, "stream">): { "content-type": string } {
  return { "content-type": stream ? "text/event-stream" : "application/json" };
}

/** A head of status 200. */
export function head(...headers: Readonly<Record<string, string>>[]): string {
  const lines = Object.entries(Object.assign({}, ...headers)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 200 OK\r\n${lines.join("")}\r\n`;
}

/** The head of an answer in chunks. */
export function begin(answer: Pick<SoundAnswer, "stream">): string {
  return head(typeOf(answer), { "transfer-encoding": "chunked" });
}

/** Sends one chunk. */
export async function chunk(line: FaultConnection, text: string | Uint8Array): Promise<void> {
  const bytes = typeof text === "string" ? encoder.encode(text) : text;
  const size = encoder.encode(`${bytes.length.toString(16)}\r\n`);
  const all = new Uint8Array(size.length + bytes.length + 2);
  all.set(size);
  all.set(bytes, size.length);
  all.set([13, 10], size.length + bytes.length);
  await line.send(all);
}

/** Sends something, and then a chunk for each text. */
export async function chunks(line: FaultConnection, texts: readonly string[], before: string): Promise<void> {
  await line.send(before);
  for (const text of texts) await chunk(line, text);
}

/** Sends a valid answer. */
export async function send(line: FaultConnection, answer: SoundAnswer): Promise<Then> {
  if (!answer.stream) return await sendWhole(line, answer.whole, { headers: typeOf(answer) });
  const frames = [...answer.opening, ...answer.pieces, ...answer.ending];
  await chunks(line, frames.filter((frame) => frame !== ""), begin(answer));
  await line.send(END);
  return "keep";
}

/** Sends a body with its length. */
export async function sendWhole(
  line: FaultConnection,
  body: string | Uint8Array,
  { status = 200, headers }: { status?: number; headers: Readonly<Record<string, string>> },
): Promise<Then> {
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const lines = Object.entries({ ...headers, "content-length": String(bytes.length) });
  await line.send(`HTTP/1.1 ${status} So\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
  await line.send(bytes);
  return "keep";
}

/** Sends a text repeatedly up to a number of bytes, with at most a block in memory. */
export async function sendMany(line: FaultConnection, text: string, bytes: number, inChunks = false): Promise<void> {
  const block = encoder.encode(text.repeat(Math.ceil(BLOCK / encoder.encode(text).length)));
  for (let left = bytes; left > 0; left -= block.length) {
    await (inChunks ? chunk(line, block) : line.send(block));
  }
}

/** A text, compressed. */
export async function gzip(text: string): Promise<Uint8Array> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

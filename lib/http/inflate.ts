/** Compressed request bodies: which codings are read, and how they are inflated without trusting them. */
import { GatewayError } from "../errors.ts";
import { LONG_STEP, turn } from "../pace.ts";
import { ByteBuffer } from "./byte_buffer.ts";
import type { HeaderValues } from "./head.ts";

/** A coding that is read. Brotli is not one of them: a few bytes of it can stand for gigabytes, all at once. */
export type Coding = "gzip" | "deflate";

const CODINGS: ReadonlyMap<string, Coding> = new Map([["gzip", "gzip"], ["x-gzip", "gzip"], ["deflate", "deflate"]]);

/** Both codings inflate a piece to about a thousand times its size at most: so much is in memory before it is counted. */
const PIECE_BYTES = 2 * 1024;

const FIRST_BUFFER_BYTES = 64 * 1024;

/**
 * The coding of a body; `undefined` for a plain one.
 * @throws {GatewayError} `unsupported_media_type` for any other coding, and for several on top of each other
 */
export function readCoding(headers: HeaderValues): Coding | undefined {
  const said = headers.get("content-encoding");
  if (said === null) return undefined;
  const names = said.split(",").map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  const [name] = names;
  if (name === undefined) return undefined;
  const coding = CODINGS.get(name);
  if (coding !== undefined && names.length === 1) return coding;
  throw new GatewayError(
    "unsupported_media_type",
    "Cannot read a body in this Content-Encoding: send it as gzip, as deflate, or without one",
    { headers: { "accept-encoding": "gzip, deflate" } },
  );
}

/**
 * Inflates a body, asking before each piece is kept.
 * @throws {GatewayError} `invalid` for bytes that are not of this coding, and whatever `take` throws
 */
export async function inflate(
  bytes: Uint8Array<ArrayBuffer>,
  { coding, take }: { coding: Coding; take: (bytes: number) => void },
): Promise<Uint8Array<ArrayBuffer>> {
  const { readable, writable } = new DecompressionStream(coding);
  const reader = readable.getReader();
  const fed = feed(bytes, writable.getWriter());
  const inflated = new ByteBuffer(FIRST_BUFFER_BYTES);
  try {
    let untilTurn = LONG_STEP;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      take(read.value.byteLength);
      inflated.append(read.value);
      untilTurn -= read.value.byteLength;
      if (untilTurn > 0) continue;
      // To inflate is no waiting: all of it would be one turn of the event loop.
      await turn();
      untilTurn = LONG_STEP;
    }
    return inflated.bytes();
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw new GatewayError("invalid", `Cannot read the body: it is not ${coding}, or not whole`, { cause });
  } finally {
    await reader.cancel().catch(() => {});
    await fed;
  }
}

/** Gives a piece only when the one before has been taken. What is wrong with the bytes, the reader is told. */
async function feed(bytes: Uint8Array<ArrayBuffer>, writer: WritableStreamDefaultWriter<BufferSource>): Promise<void> {
  try {
    for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) await writer.write(bytes.subarray(at, at + PIECE_BYTES));
    await writer.close();
  } catch {
    // The stream has failed or was cancelled, and its reader knows.
  }
}

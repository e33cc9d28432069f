/** Sends the answer to one request over a connection, with or without a fault. */
import { constants, crc32, deflateRawSync } from "node:zlib";
import type { FaultConnection } from "./connection.ts";
import type { RequestedFault } from "./faults.ts";
import type { FaultRequest, StreamStep } from "./fault_request.ts";

/** Fate of the connection after an answer. */
export type AnswerEnding =
  /** The next request may follow. */
  | "open"
  /** The server closes it. */
  | "closed"
  /** The server resets it. */
  | "reset";

/** Reason phrase of every error status. */
const REASON_PHRASE = "Rehearsal";

/** A request, and the fault that its answer must have. */
export interface AnswerToPlay {
  /** Path of the request, without the query. */
  path: string;
  request: FaultRequest;
  fault: RequestedFault | undefined;
}

/** Answers one request. @throws if the peer closes the connection */
export async function playAnswer(connection: FaultConnection, answer: AnswerToPlay): Promise<AnswerEnding> {
  const { fault } = answer;
  // A fault that comes after some text belongs to the body.
  const ending = fault?.after === undefined ? await playBeforeAnswer(connection, answer) : undefined;
  if (ending !== undefined) return ending;
  return answer.request.stream ? await playStream(connection, answer) : await playWhole(connection, answer);
}

/** Produces a fault that replaces or delays the whole answer; `undefined` if the answer is sent after it. */
async function playBeforeAnswer(
  connection: FaultConnection,
  { path, request, fault }: AnswerToPlay,
): Promise<AnswerEnding | undefined> {
  switch (fault?.name) {
    case "status":
      return await sendStatus(connection, { request, fault });
    case "error":
      return await sendStatus(connection, { request, fault: { ...fault, status: 500 } });
    case "stall":
      await connection.wait(fault.ms);
      return undefined;
    case "refuse":
    case "cut":
      return "closed";
    case "reset":
      return "reset";
    case "junk":
      await connection.send("SSH-2.0-OpenSSH_9.9\r\n\r\n");
      return "closed";
    case "redirect":
      return await sendWhole(connection, "", { status: 307, headers: { location: `/again${path}` } });
    case "wrong-type":
      return await sendWhole(connection, "<!doctype html><title>Welcome</title>", {
        headers: { "content-type": "text/html" },
      });
    case "huge-headers":
      await connection.send("HTTP/1.1 200 OK\r\nx-rehearsal: ");
      await sendMany(connection, fault.bytes ?? 0);
      await connection.send("\r\n\r\n");
      return "closed";
    case "gzip-bomb":
      await connection.send(head({ ...typeOf(request), "content-encoding": "gzip", connection: "close" }));
      await sendZeros(connection, fault.bytes ?? 0);
      return "closed";
    case "bad-chunk":
      await connection.send(`${head({ ...typeOf(request), "transfer-encoding": "chunked" })}zz\r\n{}\r\n`);
      return "closed";
  }
  return undefined;
}

function sendStatus(
  connection: FaultConnection,
  { request, fault }: { request: FaultRequest; fault: RequestedFault },
): Promise<AnswerEnding> {
  const { status = 500, retryAfter } = fault;
  return sendWhole(connection, request.errorBody(status), {
    status,
    headers: {
      "content-type": "application/json",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  });
}

/** Sends an answer that is not streamed. A fault that comes after some text happens in its middle. */
async function playWhole(connection: FaultConnection, { request, fault }: AnswerToPlay): Promise<AnswerEnding> {
  if (fault?.name === "error") return await sendStatus(connection, { request, fault: { ...fault, status: 500 } });
  if (fault?.name === "endless" || (fault?.name === "long-line" && isHuge(fault))) {
    await connection.send(head({ ...typeOf(request), connection: "close" }) + '{"text":"');
    await sendMany(connection, fault.name === "endless" ? Infinity : fault.bytes ?? 0);
    return "closed";
  }
  const text = request.replyText(fault);
  const bytes = new TextEncoder().encode(text);
  const half = bytes.subarray(0, bytes.length / 2);
  const length = { "content-length": String(bytes.length) };
  switch (fault?.name) {
    case "garbage":
      return await sendWhole(connection, "{garbage", { headers: typeOf(request) });
    case "half-event":
    case "no-end":
      return await sendWhole(connection, half, { headers: typeOf(request) });
    case "cut":
    case "reset":
      await connection.send(head({ ...typeOf(request), ...length }));
      await connection.send(half);
      return fault.name === "reset" ? "reset" : "closed";
    case "stall":
      if (fault.after === undefined) break;
      await connection.send(head({ ...typeOf(request), ...length }));
      await connection.send(half);
      await connection.wait(fault.ms);
      await connection.send(bytes.subarray(half.length));
      return "open";
    case "slow":
      await connection.wait((fault.ms ?? 0) * 10);
      break;
    case "bom":
      return await sendWhole(connection, `\ufeff${text}`, { headers: typeOf(request) });
    case "drip":
    case "split":
      await connection.send(head({ ...typeOf(request), ...length }));
      await drip(connection, text, { ms: fault.ms, write: (bytes) => connection.send(bytes) });
      return "open";
  }
  return await sendWhole(connection, text, { headers: typeOf(request) });
}

async function playStream(connection: FaultConnection, { request, fault }: AnswerToPlay): Promise<AnswerEnding> {
  await connection.send(head({ ...typeOf(request), "transfer-encoding": "chunked" }));
  if (fault?.name === "bom") await sendChunk(connection, "\ufeff");
  if (fault?.name === "long-line" && isHuge(fault)) return await sendHugeLine(connection, fault.bytes ?? 0);
  let sentPieces = 0;
  for (const step of request.steps(fault)) {
    if (step.isPiece && sentPieces++ === (fault?.after ?? 0)) {
      const ending = await playWithin(connection, { step, request, fault });
      if (ending !== undefined) return ending;
    }
    if (step.isPiece && fault?.name === "slow") await connection.wait(fault.ms);
    await sendStep(connection, step.text, fault);
  }
  await connection.send("0\r\n\r\n");
  return "open";
}

/** Produces the fault at a piece of text: in its place, or before it (then `undefined`: the piece is sent after it). */
async function playWithin(
  connection: FaultConnection,
  { step, request, fault }: { step: StreamStep; request: FaultRequest; fault: RequestedFault | undefined },
): Promise<AnswerEnding | undefined> {
  switch (fault?.name) {
    case "cut":
      return "closed";
    case "reset":
      return "reset";
    case "stall":
      // Without a count, the stall came before the answer.
      if (fault.after !== undefined) await connection.wait(fault.ms);
      return undefined;
    case "error":
      await sendChunk(connection, request.streamError());
      break;
    case "garbage":
      await sendChunk(connection, "data: {garbage\n\n");
      break;
    case "half-event":
      await sendChunk(connection, step.text.slice(0, step.text.length / 2));
      break;
    default:
      return undefined;
  }
  await connection.send("0\r\n\r\n");
  return "open";
}

/** Sends the events of a step, with the faults that change how bytes are sent. */
async function sendStep(connection: FaultConnection, text: string, fault: RequestedFault | undefined): Promise<void> {
  switch (fault?.name) {
    case "crlf":
      return await sendChunk(connection, text.replaceAll("\n", "\r\n"));
    case "drip":
    case "split":
      return await drip(connection, text, { ms: fault.ms, write: (bytes) => sendChunk(connection, bytes) });
    default:
      return await sendChunk(connection, text);
  }
}

/** Sends a text byte by byte, so that even characters are split. */
async function drip(
  connection: FaultConnection,
  text: string,
  { ms, write }: { ms: number | undefined; write: (bytes: Uint8Array) => Promise<void> },
): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at++) {
    if (ms !== undefined) await connection.wait(ms);
    await write(bytes.subarray(at, at + 1));
  }
}

/** Sends an answer with its length in the head. */
async function sendWhole(
  connection: FaultConnection,
  body: string | Uint8Array,
  { status = 200, headers }: { status?: number; headers: Record<string, string> },
): Promise<AnswerEnding> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  await connection.send(head({ ...headers, "content-length": String(bytes.length) }, status));
  await connection.send(bytes);
  return "open";
}

/** Sends one chunk of a body in chunked transfer encoding. */
async function sendChunk(connection: FaultConnection, text: string | Uint8Array): Promise<void> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  if (bytes.length === 0) return;
  const size = new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`);
  const whole = new Uint8Array(size.length + bytes.length + 2);
  whole.set(size);
  whole.set(bytes, size.length);
  whole.set([13, 10], size.length + bytes.length);
  await connection.send(whole);
}

/** A large body is sent in such blocks, so that only one is in memory. */
const BLOCK = new TextEncoder().encode("x".repeat(64 * 1024));

/** Sends a number of characters. */
async function sendMany(connection: FaultConnection, count: number): Promise<void> {
  for (let remaining = count; remaining > 0; remaining -= BLOCK.length) {
    await connection.send(BLOCK.subarray(0, remaining));
  }
}

/** Sends a streamed answer whose only line may exceed the maximum length of a string. */
async function sendHugeLine(connection: FaultConnection, bytes: number): Promise<AnswerEnding> {
  await sendChunk(connection, 'data: {"text":"');
  for (let remaining = bytes; remaining > 0; remaining -= BLOCK.length) await sendChunk(connection, BLOCK);
  await sendChunk(connection, '"}\n\n');
  await connection.send("0\r\n\r\n");
  return "open";
}

/** Sends a number of zeros as a gzip file. Compresses a MiB of zeros once, and sends that part repeatedly. */
async function sendZeros(connection: FaultConnection, bytes: number): Promise<void> {
  const block = new Uint8Array(1024 ** 2);
  const compressed = compressPart(block);
  let checksum = 0;
  await connection.send(Uint8Array.of(31, 139, 8, 0, 0, 0, 0, 0, 0, 3));
  for (let remaining = bytes; remaining > 0; remaining -= block.length) {
    const part = block.subarray(0, remaining);
    checksum = crc32(part, checksum);
    await connection.send(part.length === block.length ? compressed : compressPart(part));
  }
  // The empty last block, the checksum and the size.
  const end = new DataView(new ArrayBuffer(10));
  end.setUint16(0, 0x0300);
  end.setUint32(2, checksum, true);
  end.setUint32(6, bytes, true);
  await connection.send(new Uint8Array(end.buffer));
}

function compressPart(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return new Uint8Array(deflateRawSync(bytes, { finishFlush: constants.Z_FULL_FLUSH }));
}

/** Returns whether a size is too large to build in memory. */
function isHuge({ bytes = 0 }: RequestedFault): boolean {
  return bytes > 64 * 1024 ** 2;
}

function typeOf({ stream }: FaultRequest): Record<string, string> {
  return { "content-type": stream ? "text/event-stream" : "application/json" };
}

function head(headers: Record<string, string>, status = 200): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${status} ${status === 200 ? "OK" : REASON_PHRASE}\r\n${lines}\r\n`;
}

/** Plays one answer, with or without a fault, on a connection. */
import type { Line, RawRequest } from "./connection.ts";
import type { Fault } from "./faults.ts";
import type { Spoken, Step } from "./spoken.ts";

/** How a connection is left. */
export type Ending =
  /** The next request may come. */
  | "open"
  /** It is closed. */
  | "closed"
  /** It is reset. */
  | "reset";

/** Bytes written at a time where there are many. */
const BLOCK = 64 * 1024;

/** Statuses with words of their own; the client does not care. */
const REASON = "Rehearsal";

/** What an answer is made of. */
export interface Playing {
  request: RawRequest;
  spoken: Spoken;
  fault: Fault | undefined;
}

/** Answers one request. @throws where the peer goes away meanwhile */
export async function play(line: Line, playing: Playing): Promise<Ending> {
  const { fault } = playing;
  // What happens after some text, and what is said differently, is a matter of the body.
  const early = fault?.after === undefined ? await playEarly(line, playing) : undefined;
  if (early !== undefined) return early;
  return playing.spoken.stream ? await playStream(line, playing) : await playWhole(line, playing);
}

/** Faults that leave nothing of an answer. */
async function playEarly(line: Line, { request, spoken, fault }: Playing): Promise<Ending | undefined> {
  switch (fault?.name) {
    case "status":
      return await sendStatus(line, { spoken, fault });
    case "error":
      return await sendStatus(line, { spoken, fault: { ...fault, status: 500 } });
    case "stall":
      await line.wait(fault.ms);
      return undefined;
    case "refuse":
    case "cut":
      return "closed";
    case "reset":
      return "reset";
    case "junk":
      await line.send("SSH-2.0-OpenSSH_9.9\r\n\r\n");
      return "closed";
    case "redirect":
      return await sendWhole(line, "", { status: 307, headers: { location: `/again${request.path}` } });
    case "wrong-type":
      return await sendWhole(line, "<!doctype html><title>Welcome</title>", {
        headers: { "content-type": "text/html" },
      });
    case "huge-headers":
      await line.send("HTTP/1.1 200 OK\r\nx-rehearsal: ");
      await sendMany(line, "x", fault.bytes ?? 0);
      await line.send("\r\n\r\n");
      return "closed";
    case "gzip-bomb":
      await line.send(head({ ...typeOf(spoken), "content-encoding": "gzip", connection: "close" }));
      await sendZeros(line, fault.bytes ?? 0);
      return "closed";
    case "bad-chunk":
      await line.send(`${head({ ...typeOf(spoken), "transfer-encoding": "chunked" })}zz\r\n{}\r\n`);
      return "closed";
  }
  return undefined;
}

function sendStatus(line: Line, { spoken, fault }: { spoken: Spoken; fault: Fault }): Promise<Ending> {
  const { status = 500, retryAfter } = fault;
  return sendWhole(line, spoken.error(status), {
    status,
    headers: {
      "content-type": "application/json",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  });
}

/** A whole answer; a fault that comes after some text comes in the middle of it. */
async function playWhole(line: Line, { spoken, fault }: Playing): Promise<Ending> {
  if (fault?.name === "error") return await sendStatus(line, { spoken, fault: { ...fault, status: 500 } });
  if (fault?.name === "endless" || (fault?.name === "long-line" && isHuge(fault))) {
    await line.send(head({ ...typeOf(spoken), connection: "close" }) + '{"text":"');
    await sendMany(line, "x", fault.name === "endless" ? Infinity : fault.bytes ?? 0);
    return "closed";
  }
  const text = spoken.whole(fault);
  const half = text.slice(0, text.length / 2);
  const length = { "content-length": String(new TextEncoder().encode(text).length) };
  switch (fault?.name) {
    case "garbage":
      return await sendWhole(line, "{garbage", typed(spoken));
    case "half-event":
    case "no-end":
      return await sendWhole(line, half, typed(spoken));
    case "cut":
    case "reset":
      await line.send(head({ ...typeOf(spoken), ...length }) + half);
      return fault.name === "reset" ? "reset" : "closed";
    case "stall":
      if (fault.after === undefined) break;
      await line.send(head({ ...typeOf(spoken), ...length }) + half);
      await line.wait(fault.ms);
      await line.send(text.slice(half.length));
      return "open";
    case "slow":
      await line.wait((fault.ms ?? 0) * 10);
      break;
    case "bom":
      return await sendWhole(line, `\ufeff${text}`, typed(spoken));
    case "drip":
    case "split":
      await line.send(head({ ...typeOf(spoken), ...length }));
      await drip(line, text, { ms: fault.ms, write: (bytes) => line.send(bytes) });
      return "open";
  }
  return await sendWhole(line, text, typed(spoken));
}

async function playStream(line: Line, { spoken, fault }: Playing): Promise<Ending> {
  await line.send(head({ ...typeOf(spoken), "transfer-encoding": "chunked" }));
  if (fault?.name === "bom") await sendChunk(line, "\ufeff");
  if (fault?.name === "long-line" && isHuge(fault)) return await sendHugeLine(line, fault.bytes ?? 0);
  let pieces = 0;
  for (const step of spoken.steps(fault)) {
    if (step.piece && pieces++ === (fault?.after ?? 0)) {
      const ending = await playWithin(line, { step, spoken, fault });
      if (ending !== undefined) return ending;
    }
    if (step.piece && fault?.name === "slow") await line.wait(fault.ms);
    await sendStep(line, step.wire, fault);
  }
  await line.send("0\r\n\r\n");
  return "open";
}

/** What happens in place of a piece of text; `undefined` where the text comes all the same. */
async function playWithin(
  line: Line,
  { step, spoken, fault }: { step: Step; spoken: Spoken; fault: Fault | undefined },
): Promise<Ending | undefined> {
  switch (fault?.name) {
    case "cut":
      return "closed";
    case "reset":
      return "reset";
    case "stall":
      // Without a count it has happened before the answer.
      if (fault.after !== undefined) await line.wait(fault.ms);
      return undefined;
    case "error":
      await sendChunk(line, spoken.failure());
      break;
    case "garbage":
      await sendChunk(line, "data: {garbage\n\n");
      break;
    case "half-event":
      await sendChunk(line, step.wire.slice(0, step.wire.length / 2));
      break;
    default:
      return undefined;
  }
  await line.send("0\r\n\r\n");
  return "open";
}

async function sendStep(line: Line, wire: string, fault: Fault | undefined): Promise<void> {
  switch (fault?.name) {
    case "crlf":
      return await sendChunk(line, wire.replaceAll("\n", "\r\n"));
    case "drip":
    case "split":
      return await drip(line, wire, { ms: fault.ms, write: (bytes) => sendChunk(line, bytes) });
    default:
      return await sendChunk(line, wire);
  }
}

/** Byte by byte, also within a character. */
async function drip(
  line: Line,
  text: string,
  { ms, write }: { ms: number | undefined; write: (bytes: Uint8Array) => Promise<void> },
): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at++) {
    if (ms !== undefined) await line.wait(ms);
    await write(bytes.subarray(at, at + 1));
  }
}

async function sendWhole(
  line: Line,
  body: string,
  { status = 200, headers }: { status?: number; headers: Record<string, string> },
): Promise<Ending> {
  const length = new TextEncoder().encode(body).length;
  await line.send(head({ ...headers, "content-length": String(length) }, status) + body);
  return "open";
}

async function sendChunk(line: Line, text: string | Uint8Array): Promise<void> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  if (bytes.length === 0) return;
  const size = new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`);
  const whole = new Uint8Array(size.length + bytes.length + 2);
  whole.set(size);
  whole.set(bytes, size.length);
  whole.set([13, 10], size.length + bytes.length);
  await line.send(whole);
}

/** One character many times, never more of them in memory than a block. */
async function sendMany(line: Line, character: string, count: number): Promise<void> {
  const block = new TextEncoder().encode(character.repeat(BLOCK));
  for (let left = count; left > 0; left -= BLOCK) await line.send(left < BLOCK ? block.subarray(0, left) : block);
}

/** A line that is larger than a string can be. */
async function sendHugeLine(line: Line, bytes: number): Promise<Ending> {
  await sendChunk(line, 'data: {"text":"');
  const block = new TextEncoder().encode("x".repeat(BLOCK));
  for (let left = bytes; left > 0; left -= BLOCK) await sendChunk(line, block);
  await sendChunk(line, '"}\n\n');
  await line.send("0\r\n\r\n");
  return "open";
}

/** Zeros, compressed while they go out. */
async function sendZeros(line: Line, bytes: number): Promise<void> {
  let left = bytes;
  const zeros = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (left <= 0) return controller.close();
      controller.enqueue(new Uint8Array(Math.min(BLOCK, left)));
      left -= BLOCK;
    },
  }, { highWaterMark: 0 });
  for await (const piece of zeros.pipeThrough(new CompressionStream("gzip"))) await line.send(piece);
}

/** More than is made in one piece. */
function isHuge({ bytes = 0 }: Fault): boolean {
  return bytes > 64 * 1024 ** 2;
}

function typeOf({ stream }: Spoken): Record<string, string> {
  return { "content-type": stream ? "text/event-stream" : "application/json" };
}

function typed(spoken: Spoken): { headers: Record<string, string> } {
  return { headers: typeOf(spoken) };
}

function head(headers: Record<string, string>, status = 200): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${status} ${status === 200 ? "OK" : REASON}\r\n${lines}\r\n`;
}

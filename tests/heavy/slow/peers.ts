/**
 * Slow clients over bare sockets, in a process of their own: readers that request a large stream and read little or
 * nothing of it, writers that send a byte of their body each second. Commands and answers are lines of JSON.
 */
import { send } from "../../../bench/suite/messages.ts";
import { pause, soon } from "../../support/soon.ts";
import { ChunkedText } from "../streams/chunked_text.ts";
import { answerLines } from "../../../bench/suite/peer.ts";

/** A command. */
export type PeerCommand =
  /** Open connections one after the other. Answered once all have sent their first bytes. */
  | { kind: "open"; port: number; key: string; models: Models; readers: number; writers: number }
  /** Wait until all writers have an answer. */
  | { kind: "refused" }
  /** Lets this many readers read to the end, then closes all. */
  | { kind: "drain"; readers: number };

/** Which models readers ask for: with a credential of the Messages protocol, or else. */
export interface Models {
  native: string;
  chat: string;
}

/** Results of all peers. */
export interface Seen {
  /** Readers that have got a head. */
  heads: number;
  /** Ids of all readers' requests. */
  ids: readonly string[];
  writers: readonly Written[];
  read: readonly Read[];
  ms: number;
}

/** A writer's answer. */
export interface Written {
  native: boolean;
  /** From the first byte to the answer, in milliseconds. */
  ms: number;
  text: string;
}

/** A stream that was read to its end, after all. */
export interface Read {
  native: boolean;
  id: string;
  words: number;
  /** Its last characters. */
  end: string;
}

/** Connections that are opened in one second. */
const PER_SECOND = 100;
/** Bytes that a slow reader reads each second. Every second one reads nothing. */
const SIP = 1_024;
/** Body lengths that writers announce, in bytes: the gateway reads small ones another way. */
const BODY_BYTES = [5_000, 100_000];
/** Longest wait for all connections to get a head, an answer or the rest of a body, on a busy machine. */
export const LONGEST_MS = 600_000;
/**
 * One of this many readers uses the Messages protocol: its answer is translated, so all of its text must be counted.
 */
const NATIVE_OF = 30;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const CLOSED = new Set<Deno.TcpConn>();

function headOf(native: boolean, { key, length }: { key: string; length: number }): string {
  const credential = native ? `x-api-key: ${key}\r\nanthropic-version: 2023-06-01` : `authorization: Bearer ${key}`;
  const path = native ? "/anthropic/v1/messages" : "/v1/chat/completions";
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${credential}\r\ncontent-type: application/json\r\n` +
    `content-length: ${length}\r\n\r\n`;
}

function close(socket: Deno.TcpConn): void {
  if (CLOSED.has(socket)) return;
  CLOSED.add(socket);
  try {
    socket.close();
  } catch {
    // The other side did.
  }
}

/** Reads a little from time to time, until a command asks to read everything. */
class Reader {
  readonly head = Promise.withResolvers<void>();
  readonly native: boolean;
  id = "";
  readonly #socket: Deno.TcpConn;
  readonly #body = new ChunkedText();
  #text = "";
  #words = 0;
  #isDraining = false;
  #sipping = Promise.resolve();

  constructor(socket: Deno.TcpConn, { native }: { native: boolean }) {
    this.#socket = socket;
    this.native = native;
  }

  async begin(request: Uint8Array, { sips }: { sips: boolean }): Promise<void> {
    await send(this.#socket, request);
    const buffer = new Uint8Array(SIP);
    let head = "";
    while (!head.includes("\r\n\r\n")) {
      const read = await this.#socket.read(buffer);
      if (read === null) throw new Error(`No head: ${head}`);
      head += decoder.decode(buffer.subarray(0, read));
    }
    if (!head.startsWith("HTTP/1.1 200 ")) throw new Error(head);
    this.id = /\r\nx-request-id: req_(\w+)/i.exec(head)?.[1] ?? "";
    this.#take(head.slice(head.indexOf("\r\n\r\n") + 4));
    this.head.resolve();
    if (sips) this.#sipping = this.#sip(buffer);
  }

  async #sip(buffer: Uint8Array): Promise<void> {
    while (!this.#isDraining) {
      await pause(1_000);
      if (CLOSED.has(this.#socket)) return;
      const read = await this.#socket.read(buffer).catch(() => null);
      if (read === null) return;
      this.#take(decoder.decode(buffer.subarray(0, read)));
    }
  }

  /** Reads on to the end. */
  async drain(): Promise<Read> {
    this.#isDraining = true;
    await this.#sipping;
    const buffer = new Uint8Array(256 * 1024);
    while (!this.#body.ended) {
      const read = await this.#socket.read(buffer);
      if (read === null) break;
      this.#take(decoder.decode(buffer.subarray(0, read)));
    }
    return {
      native: this.native,
      id: this.id,
      words: this.#words + countWords(this.#text),
      end: this.#text.slice(-600),
    };
  }

  close(): void {
    this.#isDraining = true;
    close(this.#socket);
  }

  #take(text: string): void {
    this.#text += this.#body.push(text);
    // Words are counted as they arrive; the last one may be incomplete.
    const cut = this.#text.lastIndexOf("\n", this.#text.length - 1_000);
    if (cut < 0) return;
    this.#words += countWords(this.#text.slice(0, cut));
    this.#text = this.#text.slice(cut);
  }
}

function countWords(text: string): number {
  return text.split(" word").length - 1;
}

/** Sends a byte each second, until it is answered. */
async function write(socket: Deno.TcpConn, { native, key }: { native: boolean; key: string }): Promise<Written> {
  const begun = performance.now();
  const length = BODY_BYTES[writers.length % BODY_BYTES.length] ?? 0;
  await send(socket, encoder.encode(`${headOf(native, { key, length })}{`));
  let isOver = false;
  (async () => {
    while (!isOver) {
      await pause(1_000);
      if (!isOver) await send(socket, encoder.encode(" ")).catch(() => isOver = true);
    }
  })();
  const buffer = new Uint8Array(4096);
  let text = "";
  // A byte that arrives after the answer resets the connection, and unread data is lost.
  const next = () => socket.read(buffer).catch(() => null);
  for (let read = await next(); read !== null; read = await next()) {
    text += decoder.decode(buffer.subarray(0, read));
    if (/\}\s*$/.test(text)) break;
  }
  isOver = true;
  close(socket);
  return { native, ms: Math.round(performance.now() - begun), text };
}

let readers: Reader[] = [];
let writers: Promise<Written>[] = [];

async function open({ port, key, models, ...wanted }: Extract<PeerCommand, { kind: "open" }>): Promise<void> {
  const requests = [false, true].map((native) => {
    const body = JSON.stringify({
      model: native ? models.native : models.chat,
      stream: true,
      max_tokens: 1_000_000,
      messages: [{ role: "user", content: "Go" }],
    });
    return encoder.encode(headOf(native, { key, length: body.length }) + body);
  });
  const begun = performance.now();
  const all = wanted.readers + wanted.writers;
  for (let count = 0; count < all; count++) {
    const late = begun + count * 1000 / PER_SECOND - performance.now();
    if (late > 0) await pause(late);
    const socket = await Deno.connect({ hostname: "127.0.0.1", port });
    socket.setNoDelay(true);
    // Readers and writers alternate while there are both.
    const isReader = count % 2 === 0 ? readers.length < wanted.readers : writers.length >= wanted.writers;
    if (isReader) {
      const native = readers.length % NATIVE_OF === 1;
      const reader = new Reader(socket, { native });
      readers.push(reader);
      reader.begin(requests[native ? 1 : 0] ?? new Uint8Array(), { sips: readers.length % 4 < 2 }).catch((error) =>
        reader.head.reject(error)
      );
    } else writers.push(write(socket, { native: writers.length % 4 > 1, key }));
  }
  await soon("the heads", Promise.all(readers.map(({ head }) => head.promise)), LONGEST_MS);
}

async function drain(count: number): Promise<Read[]> {
  const read = await soon(
    "the bodies",
    Promise.all(readers.slice(0, count).map((reader) => reader.drain())),
    LONGEST_MS,
  );
  for (const reader of readers) reader.close();
  readers = [];
  writers = [];
  return read;
}

if (import.meta.main) {
  await answerLines(async (line) => {
    const begun = performance.now();
    const command: PeerCommand = JSON.parse(line);
    const seen = { heads: 0, ids: [] as string[], writers: [] as Written[], read: [] as Read[], ms: 0 };
    try {
      if (command.kind === "open") await open(command);
      if (command.kind === "refused") seen.writers = await soon("the refusals", Promise.all(writers), LONGEST_MS);
      seen.ids = readers.map(({ id }) => id).filter((id) => id !== "");
      seen.heads = seen.ids.length;
      if (command.kind === "drain") seen.read = await drain(command.readers);
    } catch (error) {
      return { failed: String(error) };
    }
    return { ...seen, ms: Math.round(performance.now() - begun) };
  });
  Deno.exit(0);
}

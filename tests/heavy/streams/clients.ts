/**
 * Many clients over bare sockets, in a process of their own: each requests one Chat stream and checks everything it
 * receives: every number once and in order, the usage, the cost, the end. Commands and answers are lines of JSON.
 */
import { send } from "../../../bench/suite/messages.ts";
import { soon } from "../../support/soon.ts";
import { ChunkedText } from "./chunked_text.ts";
import { answerLines } from "../../../bench/suite/peer.ts";
import { stamp } from "./stamp.ts";

/** A command. */
export type ClientCommand =
  /** Open streams at these ports in turn. Answered once each has its first number. */
  | { kind: "open"; ports: readonly number[]; key: string; model: string; streams: number }
  /** Report the results since the last report. */
  | { kind: "tell" }
  /** Wait for the end of all streams. */
  | { kind: "finish" }
  /** Close all connections. */
  | { kind: "close" };

/** Results of all clients. */
export interface Seen {
  streams: number;
  /** Streams that have ended as they should: all numbers, usage, cost, mark, last chunk. */
  ended: number;
  /** Numbers that came, over all streams. */
  events: number;
  /** The first things that went wrong, and how many did. */
  errors: readonly string[];
  failed: number;
  /** Total reported cost, in 1e-12 USD, as a decimal string. */
  paid: string;
  /** Tokens of all answers, by their reported usage. */
  completions: number;
  /** From the upstream's mouth to the client's ear, in milliseconds, since the last time. */
  delay: { p50: number; p99: number; max: number };
  /** Duration of the job, in milliseconds. */
  ms: number;
}

/** Streams that are opened at once. */
const AT_ONCE = 64;
/** Longest time for a stream to begin, and for all to end, in milliseconds. */
const BEGIN_MS = 60_000;
const END_MS = 110_000;
const MAX_ERRORS = 20;
const UNITS_PER_USD_DIGITS = 12;

const decoder = new TextDecoder();

/** One stream, from its request to its end. */
class Client {
  readonly begun = Promise.withResolvers<void>();
  readonly over = Promise.withResolvers<void>();
  isOver = false;
  readonly #socket: Deno.TcpConn;
  readonly #body = new ChunkedText();
  #head: string | undefined = "";
  #line = "";
  #next = 0;
  #completion: number | undefined;
  #cost: bigint | undefined;
  #isMarked = false;

  constructor(socket: Deno.TcpConn) {
    this.#socket = socket;
  }

  async run(request: Uint8Array): Promise<void> {
    try {
      await send(this.#socket, request);
      const buffer = new Uint8Array(4096);
      while (!this.#body.ended) {
        const read = await this.#socket.read(buffer);
        if (read === null) throw new Error(`The connection ended after ${this.#next} numbers`);
        this.#take(decoder.decode(buffer.subarray(0, read)));
      }
      this.#finish();
    } catch (error) {
      fail(error);
    }
    this.isOver = true;
    this.begun.resolve();
    this.over.resolve();
  }

  close(): void {
    try {
      this.#socket.close();
    } catch {
      // It is closed already.
    }
  }

  #take(text: string): void {
    if (this.#head !== undefined) {
      this.#head += text;
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!this.#head.startsWith("HTTP/1.1 200 ") || !/\r\ntransfer-encoding: chunked/i.test(this.#head)) {
        throw new Error(`${this.#head.slice(0, this.#head.indexOf("\r\n"))} ${this.#head.slice(end + 4)}`);
      }
      text = this.#head.slice(end + 4);
      this.#head = undefined;
    }
    const lines = (this.#line + this.#body.push(text)).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) this.#event(line.slice(6));
  }

  #event(data: string): void {
    if (this.#isMarked) throw new Error(`After the mark: ${data}`);
    if (data === "[DONE]") {
      this.#isMarked = true;
      return;
    }
    const { choices, usage, sluice_cost, error } = JSON.parse(data);
    if (error !== undefined) throw new Error(data);
    const content: string = choices[0]?.delta?.content ?? "";
    if (content !== "") this.#number(content);
    if (typeof usage?.completion_tokens === "number") {
      this.#completion = usage.completion_tokens;
      this.#cost = amountOf(sluice_cost);
    }
  }

  /** One event may contain several. */
  #number(content: string): void {
    for (const word of content.trimEnd().split(" ")) {
      const [number, at] = word.split(":").map(Number);
      if (number !== this.#next) throw new Error(`Number ${number} came after ${this.#next - 1}`);
      this.#next++;
      seen.events++;
      delays.push(stamp() - (at ?? 0));
      this.begun.resolve();
    }
  }

  #finish(): void {
    if (!this.#isMarked || this.#completion !== this.#next || this.#cost === undefined) {
      throw new Error(`Ended with ${this.#next} numbers, usage ${this.#completion}, cost ${this.#cost}`);
    }
    seen.ended++;
    seen.completions += this.#next;
    paid += this.#cost;
  }
}

let clients: Client[] = [];
let delays: number[] = [];
let paid = 0n;
const errors: string[] = [];
const seen = { streams: 0, ended: 0, events: 0, failed: 0, completions: 0 };

function fail(error: unknown): void {
  seen.failed++;
  if (errors.length < MAX_ERRORS) errors.push(String(error).slice(0, 500));
}

/** A decimal string of USD as units of 1e-12. */
function amountOf(usd: unknown): bigint {
  const [whole = "", decimals = ""] = String(usd).split(".");
  return BigInt(whole + decimals.padEnd(UNITS_PER_USD_DIGITS, "0"));
}

function requestFor({ key, model }: Extract<ClientCommand, { kind: "open" }>): Uint8Array {
  const body = JSON.stringify({
    model,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 1024,
    messages: [{ role: "system", content: "Count." }, { role: "user", content: "From nought, please. ".repeat(20) }],
  });
  return new TextEncoder().encode(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

async function open(command: Extract<ClientCommand, { kind: "open" }>): Promise<void> {
  const request = requestFor(command);
  let opened = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (opened < command.streams) {
      const port = command.ports[opened++ % command.ports.length] ?? 0;
      seen.streams++;
      try {
        const socket = await Deno.connect({ hostname: "127.0.0.1", port });
        socket.setNoDelay(true);
        const client = new Client(socket);
        clients.push(client);
        void client.run(request);
        await soon("the first number", client.begun.promise, BEGIN_MS);
      } catch (error) {
        fail(error);
      }
    }
  }));
}

function tell(ms: number): Seen {
  const sorted = delays.sort((a, b) => a - b);
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10;
  delays = [];
  return { ...seen, errors, paid: String(paid), delay: { p50: at(0.5), p99: at(0.99), max: at(1) }, ms };
}

if (import.meta.main) {
  await answerLines(async (line) => {
    const begun = performance.now();
    const command: ClientCommand = JSON.parse(line);
    if (command.kind === "open") await open(command);
    if (command.kind === "finish") {
      await soon("the end", Promise.all(clients.map(({ over }) => over.promise)), END_MS).catch(fail);
    }
    if (command.kind === "close") {
      for (const client of clients) client.close();
      clients = [];
    }
    return tell(Math.round(performance.now() - begun));
  });
  Deno.exit(0);
}

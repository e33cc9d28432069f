/**
 * The clients of the soak, in their own process. The first input line has the address and the rate; each further line
 * asks for the counts since the last one; `stop` lets open requests complete first.
 */
import { seeded } from "../../tests/support/random.ts";
import { type Ask, type Keys, mixOf } from "./mix.ts";
import { type Message, MessageReader, send } from "./messages.ts";

/** The first line. */
export interface Order {
  port: number;
  perSecond: number;
  keys: Keys;
  seed: number;
}

/** Counts since the last report. */
export interface Told {
  /** By kind: answers by status. `left` where the client went first, `broken` where the answer had no end. */
  answers: Record<string, Record<string, number>>;
  /** Requests that were left out, as too many were under way. */
  leftOut: number;
  underWay: number;
  /** Failures of the gateway where nothing that it asks fails: the first of them. */
  surprises: Surprise[];
}

/** A status of 500 or above to a request that should have gone well. */
export interface Surprise {
  kind: string;
  status: number;
  /** The answer that the client got. */
  body: string;
  /** When it was asked, by the wall clock, and how long the answer took, in milliseconds. */
  at: string;
  afterMs: number;
}

/** Most unexpected answers in one report. */
const MAX_SURPRISES = 50;

/** Most requests under way; the gateway has a share of a machine, and others have theirs. */
const MAX_IN_PROGRESS = 600;
/** Requests of one connection, after which there is another one. */
const REQUESTS_OF_ONE = 100;
/** Bytes read at once. */
const BUFFER_BYTES = 16 * 1024;
/** Interval of the scheduler, in milliseconds. */
const TICK_MS = 5;
/** Longest time in which all that is under way ends, in milliseconds: no answer of the mix takes as long. */
const LAST_MS = 20_000;

interface Connection {
  socket: Deno.TcpConn;
  reader: MessageReader;
  messages: number;
}

let answers: Told["answers"] = {};
let surprises: Surprise[] = [];
let leftOut = 0;
let underWay = 0;
let isStopped = false;
const idle: Connection[] = [];
const encoder = new TextEncoder();

function count(kind: string, outcome: string): void {
  const of = answers[kind] ??= {};
  of[outcome] = (of[outcome] ?? 0) + 1;
}

/** A requested fault is an expected answer. */
function look({ kind }: Ask, { message: { head, text }, afterMs }: { message: Message; afterMs: number }): void {
  const status = Number(head.slice(9, 12));
  if (status < 500 || kind === "fault" || surprises.length >= MAX_SURPRISES) return;
  const at = new Date(Date.now() - afterMs).toISOString();
  surprises.push({ kind, status, body: text.slice(0, 300), at, afterMs: Math.round(afterMs) });
}

async function connect(port: number): Promise<Connection> {
  const socket = await Deno.connect({ hostname: "127.0.0.1", port });
  socket.setNoDelay(true);
  return { socket, reader: new MessageReader(socket, BUFFER_BYTES), messages: 0 };
}

async function play(ask: Ask, port: number): Promise<void> {
  const connection = idle.pop() ?? await connect(port);
  let isDone = false;
  try {
    connection.messages++;
    const begin = performance.now();
    await send(connection.socket, bytesOf(ask));
    if (ask.leaveMs !== undefined) {
      if (ask.leaveMs >= 0) {
        await connection.reader.next({ first: true });
        await pause(ask.leaveMs);
      }
      count(ask.kind, "left");
      return;
    }
    const message = await connection.reader.next({ keep: true });
    count(ask.kind, message === undefined ? "broken" : message.head.slice(9, 12));
    if (message !== undefined) look(ask, { message, afterMs: performance.now() - begin });
    isDone = message !== undefined && connection.messages < REQUESTS_OF_ONE &&
      !/\r\nconnection: close/i.test(message.head);
  } catch {
    // As it must be, where the upstream has cut an answer.
    count(ask.kind, "broken");
  } finally {
    if (isDone) idle.push(connection);
    else connection.socket.close();
  }
}

function bytesOf({ method, path, headers, body }: Ask): Uint8Array {
  const bytes = encoder.encode(body);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = encoder.encode(
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines}content-length: ${bytes.length}\r\n\r\n`,
  );
  const all = new Uint8Array(head.length + bytes.length);
  all.set(head);
  all.set(bytes, head.length);
  return all;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function work({ port, perSecond, keys, seed }: Order): Promise<void> {
  const next = mixOf(keys, seeded(seed).next);
  const begin = performance.now();
  for (let number = 0; !isStopped;) {
    const due = (performance.now() - begin) / 1000 * perSecond;
    for (; number < due; number++) {
      if (underWay >= MAX_IN_PROGRESS) {
        leftOut++;
        continue;
      }
      underWay++;
      play(next(), port).catch(() => count("connect", "failed")).finally(() => underWay--);
    }
    await pause(TICK_MS);
  }
}

async function stop(): Promise<void> {
  isStopped = true;
  for (const begin = performance.now(); underWay > 0 && performance.now() - begin < LAST_MS;) await pause(TICK_MS);
  for (const { socket } of idle.splice(0)) socket.close();
}

async function main(): Promise<void> {
  let text = "";
  let isFirst = true;
  for await (const piece of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (isFirst) work(JSON.parse(line));
      isFirst = false;
      if (line === "stop") await stop();
      const result: Told = { answers, leftOut, underWay, surprises };
      // deno-lint-ignore no-console -- what the suite waits for
      console.log(JSON.stringify(result));
      answers = {};
      surprises = [];
      leftOut = 0;
    }
  }
}

if (import.meta.main) {
  await main();
  Deno.exit(0);
}

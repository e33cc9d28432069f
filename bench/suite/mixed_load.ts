/**
 * The clients of the soak, in their own process. The first input line has the address and the rate; each further line
 * asks for the counts since the last one; `stop` lets open requests complete first.
 */
import { setTimeout as pause } from "node:timers/promises";
import { seeded } from "../../tests/support/random.ts";
import { type Keys, mixOf, type MixRequest } from "./mix.ts";
import { connect, type Connection, type Message, requestBytes, send } from "./messages.ts";
import { answerLines } from "./peer.ts";

/** The first line. */
export interface LoadOptions {
  port: number;
  perSecond: number;
  keys: Keys;
  seed: number;
}

/** Counts since the last report. */
export interface LoadReport {
  /** By kind: answers by status. `left` where the client disconnected first, `broken` where the answer had no end. */
  answers: Record<string, Record<string, number>>;
  /** Requests not sent because too many were in progress. */
  leftOut: number;
  inProgress: number;
  /** The first unexpected failures. */
  failures: UnexpectedFailure[];
}

/** A status of 500 or above to a request that should have gone well. */
export interface UnexpectedFailure {
  kind: string;
  status: number;
  /** The answer that the client got. */
  body: string;
  /** Start by the wall clock, and duration in milliseconds. */
  at: string;
  afterMs: number;
}

/** Maximum number of failures in one report. */
const MAX_FAILURES = 50;

/** Maximum number of requests in progress. */
const MAX_IN_PROGRESS = 600;
/** Requests per connection; the next request opens a new one. */
const REQUESTS_OF_ONE = 100;
/** Bytes read at once. */
const BUFFER_BYTES = 16 * 1024;
/** Interval of the scheduler, in milliseconds. */
const TICK_MS = 5;
/** Time for open requests to end, in milliseconds: longer than any answer of the mix. */
const LAST_MS = 20_000;

let answers: LoadReport["answers"] = {};
let failures: UnexpectedFailure[] = [];
let leftOut = 0;
let inProgress = 0;
let isStopped = false;
const idle: (Connection & { messages: number })[] = [];

function count(kind: string, outcome: string): void {
  const of = answers[kind] ??= {};
  of[outcome] = (of[outcome] ?? 0) + 1;
}

/** Records an unexpected failure; requested faults are expected. */
function recordFailure(
  { kind }: MixRequest,
  { message: { head, text }, afterMs }: { message: Message; afterMs: number },
): void {
  const status = Number(head.slice(9, 12));
  if (status < 500 || kind === "fault" || failures.length >= MAX_FAILURES) return;
  const at = new Date(Date.now() - afterMs).toISOString();
  failures.push({ kind, status, body: text.slice(0, 300), at, afterMs: Math.round(afterMs) });
}

async function sendRequest(request: MixRequest, port: number): Promise<void> {
  const connection = idle.pop() ?? { ...await connect(port, BUFFER_BYTES), messages: 0 };
  let isDone = false;
  try {
    connection.messages++;
    const begin = performance.now();
    await send(connection.socket, requestBytes(request));
    if (request.leaveMs !== undefined) {
      if (request.leaveMs >= 0) {
        await connection.reader.next({ first: true });
        await pause(request.leaveMs);
      }
      count(request.kind, "left");
      return;
    }
    const message = await connection.reader.next({ keep: true });
    count(request.kind, message === undefined ? "broken" : message.head.slice(9, 12));
    if (message !== undefined) recordFailure(request, { message, afterMs: performance.now() - begin });
    isDone = message !== undefined && connection.messages < REQUESTS_OF_ONE &&
      !/\r\nconnection: close/i.test(message.head);
  } catch {
    // This is expected if the upstream cuts an answer.
    count(request.kind, "broken");
  } finally {
    if (isDone) idle.push(connection);
    else connection.socket.close();
  }
}

async function generateLoad({ port, perSecond, keys, seed }: LoadOptions): Promise<void> {
  const next = mixOf(keys, seeded(seed).next);
  const begin = performance.now();
  for (let number = 0; !isStopped;) {
    const due = (performance.now() - begin) / 1000 * perSecond;
    for (; number < due; number++) {
      if (inProgress >= MAX_IN_PROGRESS) {
        leftOut++;
        continue;
      }
      inProgress++;
      sendRequest(next(), port).catch(() => count("connect", "failed")).finally(() => inProgress--);
    }
    await pause(TICK_MS);
  }
}

async function stop(): Promise<void> {
  isStopped = true;
  for (const begin = performance.now(); inProgress > 0 && performance.now() - begin < LAST_MS;) await pause(TICK_MS);
  for (const { socket } of idle.splice(0)) socket.close();
}

let hasBegun = false;

async function report(line: string): Promise<LoadReport> {
  if (!hasBegun) generateLoad(JSON.parse(line));
  hasBegun = true;
  if (line === "stop") await stop();
  const result: LoadReport = { answers, leftOut, inProgress, failures };
  answers = {};
  failures = [];
  leftOut = 0;
  return result;
}

if (import.meta.main) {
  await answerLines(report);
  Deno.exit(0);
}

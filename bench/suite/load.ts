/**
 * The clients of the benchmark, in their own process: requests over bare sockets. Each input line is a job, each output
 * line its result. Connections are opened and tried before a measurement.
 */
import { PACE_MS, TIME_MARK, wallUs } from "./answers.ts";
import { bodyOf, type BodyOptions } from "./bodies.ts";
import { connect, type Connection, requestBytes, send } from "./messages.ts";
import { answerLines } from "./peer.ts";

/** The next job. */
export type LoadJob =
  | {
    kind: "open";
    port: number;
    path: string;
    headers: Readonly<Record<string, string>>;
    ask: BodyOptions;
    connections: number;
    /** The connections are not tested by a request first. */
    untried?: boolean;
  }
  /** Each connection sends one request after another until the time is over. */
  | { kind: "closed"; ms: number }
  /** Each connection requests one stream whose events carry their sending time. */
  | { kind: "timed" }
  /** This many requests per second, sent without waiting for answers. */
  | { kind: "rate"; ms: number; perSecond: number }
  /** Each connection requests one stream and stays idle after the first event. */
  | { kind: "hold" };

/** Result of a job. */
export interface JobResult {
  /** The reason why the job failed; the other members are empty then. */
  failed?: string;
  requests: number;
  /** From the first request to the end of the last answer, in milliseconds. */
  wallMs: number;
  /** Time of each request to the end of its answer, in microseconds. */
  totalUs: number[];
  /** Time of each request to the first byte of its answer's body, in microseconds. */
  firstUs: number[];
  /** Time from the sending of each timed event to its arrival, in microseconds. */
  delaysUs?: number[];
  /** The first answer, where connections were opened. */
  sample?: string;
}

/** Maximum number of times that are reported individually. */
const MAX_TIMES = 5_000;
/** Bytes per read of a stream that is only kept open. */
const SMALL_BUFFER = 16 * 1024;
/** Connections that are opened concurrently. */
const AT_ONCE = 100;

const decoder = new TextDecoder();
let request = new Uint8Array();
let connections: Connection[] = [];
let port = 0;

const emptyResult = (): JobResult => ({ requests: 0, wallMs: 0, totalUs: [], firstUs: [] });

async function ask(
  connection: Connection,
  done: JobResult,
  how: { keep?: boolean; first?: boolean } = {},
): Promise<string> {
  const begin = performance.now();
  await send(connection.socket, request);
  const message = await connection.reader.next(how);
  if (message === undefined) throw new Error("The connection ended before the answer");
  if (!message.head.startsWith("HTTP/1.1 200")) throw new Error(`${message.head.split("\r\n")[0]} ${message.text}`);
  done.requests++;
  if (done.totalUs.length < MAX_TIMES) {
    done.totalUs.push((performance.now() - begin) * 1000);
    done.firstUs.push((message.firstMs - begin) * 1000);
  }
  return message.text;
}

async function open(job: Extract<LoadJob, { kind: "open" }>): Promise<JobResult> {
  for (const { socket } of connections) socket.close();
  connections = [];
  const headers = { "content-type": "application/json", ...job.headers };
  request = requestBytes({ path: job.path, headers, body: bodyOf(job.ask) });
  port = job.port;
  for (let at = 0; at < job.connections; at += AT_ONCE) {
    const count = Math.min(AT_ONCE, job.connections - at);
    connections.push(...await Promise.all(Array.from({ length: count }, openOne)));
  }
  return emptyResult();
}

function openOne(): Promise<Connection> {
  return connect(port, SMALL_BUFFER);
}

async function closed(ms: number): Promise<JobResult> {
  const done = emptyResult();
  const begin = performance.now();
  const until = begin + ms;
  await Promise.all(connections.map(async (connection) => {
    do await ask(connection, done); while (performance.now() < until);
  }));
  done.wallMs = performance.now() - begin;
  return done;
}

async function atRate({ ms, perSecond }: { ms: number; perSecond: number }): Promise<JobResult> {
  const done = emptyResult();
  const begin = performance.now();
  const count = Math.round(ms / 1000 * perSecond);
  const idle = [...connections];
  const under: Promise<void>[] = [];
  for (let number = 0; number < count; number++) {
    const wait = begin + number * 1000 / perSecond - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    under.push((async () => {
      let connection = idle.pop();
      if (connection === undefined) connections.push(connection = await openOne());
      await ask(connection, done);
      idle.push(connection);
    })());
  }
  await Promise.all(under);
  done.wallMs = performance.now() - begin;
  return done;
}

async function timed(): Promise<JobResult> {
  const done = emptyResult();
  const begin = performance.now();
  const delaysUs = done.delaysUs = [];
  // The streams of real clients do not begin at the same moment.
  const apartMs = PACE_MS / connections.length;
  await Promise.all(connections.map(async ({ socket }, index) => {
    await new Promise((resolve) => setTimeout(resolve, index * apartMs));
    await send(socket, request);
    await readTimes(socket, delaysUs);
    done.requests++;
  }));
  done.wallMs = performance.now() - begin;
  return done;
}

const TIMES = new RegExp(TIME_MARK.replace(/0+/, "(\\d+)"), "g");

/** Reads a stream to its end and adds the delay of each timed event. @throws {Error} if it ends early or is refused */
async function readTimes(socket: Deno.TcpConn, delaysUs: number[]): Promise<void> {
  const buffer = new Uint8Array(SMALL_BUFFER);
  for (let text = ""; !text.endsWith("\r\n0\r\n\r\n");) {
    const read = await socket.read(buffer);
    if (read === null) throw new Error("The connection ended before the stream");
    const now = wallUs();
    text += decoder.decode(buffer.subarray(0, read));
    if (text.startsWith("HTTP/") && !text.startsWith("HTTP/1.1 200")) throw new Error(text.slice(0, 500));
    const end = text.lastIndexOf("\n\n") + 1;
    for (const [, sent] of text.slice(0, end).matchAll(TIMES)) delaysUs.push(now - Number(sent));
    text = text.slice(end);
  }
}

async function hold(): Promise<JobResult> {
  const done = emptyResult();
  const begin = performance.now();
  for (let at = 0; at < connections.length; at += AT_ONCE) {
    await Promise.all(connections.slice(at, at + AT_ONCE).map((connection) => ask(connection, done, { first: true })));
  }
  done.wallMs = performance.now() - begin;
  for (const { socket } of connections) drain(socket);
  return done;
}

async function drain(socket: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(4096);
  try {
    while (await socket.read(buffer) !== null);
  } catch {
    // Either side may have closed it already.
  }
}

async function run(job: LoadJob): Promise<JobResult> {
  switch (job.kind) {
    case "open": {
      const done = await open(job);
      const [first] = connections;
      if (first !== undefined && job.untried !== true) done.sample = await ask(first, done, { keep: true });
      return done;
    }
    case "closed":
      return await closed(job.ms);
    case "timed":
      return await timed();
    case "rate":
      return await atRate(job);
    case "hold":
      return await hold();
  }
}

function answer(line: string): Promise<JobResult> {
  return run(JSON.parse(line)).catch((error): JobResult => ({ ...emptyResult(), failed: String(error) }));
}

if (import.meta.main) {
  await answerLines(answer);
  Deno.exit(0);
}

/** The way to an upstream over an HTTP/1.1 client of our own, straight on the runtime's sockets. */
import { GatewayError } from "../errors.ts";
import { ConnectionEnded, readAnswerHead } from "./http1/answer_head.ts";
import { type Body, createBody } from "./http1/body.ts";
import { BrokenAnswer } from "./http1/broken_answer.ts";
import type { Connection } from "./http1/connection.ts";
import { createDeadlines, type Watch } from "./http1/deadlines.ts";
import { type Following, following } from "./http1/framing.ts";
import { type Head, headerOf } from "./http1/head.ts";
import { Pool } from "./http1/pool.ts";
import { createScratches, SCRATCH_BYTES, type Scratches } from "./http1/scratch.ts";
import { type Packed, packRequest, type Sending, startSending } from "./http1/sending.ts";
import type { Incoming, Transport, TransportOptions } from "./transport.ts";

export { canServe } from "./http1/can_serve.ts";

/** How long an idle connection is kept, in milliseconds: many servers close theirs after a minute, and say nothing of it. */
const IDLE_MS = 30_000;

/** Most that is read after an answer's end, in bytes and in milliseconds. */
const REST_BYTES = 64 * 1024;
const REST_MS = 1_000;

/** Most addresses that are remembered in parts. */
const PLACES = 1_024;

/** Where a request goes. */
interface Place {
  pool: Pool;
  host: string;
  target: string;
}

/** What the calls of one transport share. */
interface Shared {
  scratches: Scratches;
  /** Ends the reading of rests. */
  released: Set<() => void>;
}

/**
 * A transport over connections of our own. What `fetch` does and this does not: proxies, HTTP/2 and whatever is not
 * strictly HTTP/1.1; `canServe` tells what can be known before. The bytes that `read` answers with are valid until the next
 * call of any method.
 */
export function createHttp1Transport({ idleConnections = 256, idleMs = IDLE_MS }: Http1Options = {}): Transport {
  const pools = new Map<string, Pool>();
  const places = new Map<string, Place>();
  const deadlines = createDeadlines();
  const shared: Shared = { scratches: createScratches(), released: new Set() };

  function placeOf(url: string): Place {
    const known = places.get(url);
    if (known !== undefined) return known;
    const { protocol, hostname, host, port, pathname, search } = new URL(url);
    const tls = protocol === "https:";
    const key = `${protocol}//${host}`;
    const pool = pools.get(key) ?? new Pool({
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (tls ? 443 : 80) : Number(port),
      tls,
    }, { idleConnections, idleMs });
    pools.set(key, pool);
    const place = { pool, host, target: pathname + search };
    if (places.size >= PLACES) places.clear();
    places.set(url, place);
    return place;
  }

  return {
    async send({ url, headers, body, signal, limits }) {
      if (signal.aborted) throw signal.reason;
      const place = placeOf(url);
      const packed = pack(place, { headers, body, scratches: shared.scratches });
      const call = new Call(signal);
      const watch = deadlines.start(limits, (error) => call.fail(error));
      call.watch = watch;
      try {
        const reached = await reach(call, { pool: place.pool, packed });
        if (call.failed) throw new ConnectionEnded();
        watch.head();
        const answer = new Answer(reached, { call, watch, pool: place.pool, shared });
        refuseCompressed(answer);
        return answer;
      } catch (cause) {
        call.end();
        throw call.errorFor(cause, "Cannot reach the model's upstream");
      }
    },
    close() {
      // What is under way goes on to its end, without a connection being kept afterwards.
      for (const stop of shared.released) stop();
      deadlines.close();
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** How such a transport treats its connections. */
export interface Http1Options extends TransportOptions {
  /** How long an idle connection is kept, in milliseconds. */
  idleMs?: number;
}

/** One call, from its begin until its connection is somebody else's. */
class Call {
  readonly #signal: AbortSignal;
  readonly #leave: () => void;
  #error: unknown;
  #failed = false;
  /** Ends the making of a connection. */
  opening: AbortController | undefined;
  connection: Connection | undefined;
  sending: Sending | undefined;
  watch: Watch | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.#leave = () => this.fail(signal.reason);
    signal.addEventListener("abort", this.#leave, { once: true });
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** Gives it up: whatever it waits for fails now. */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#error = error;
    this.opening?.abort(error);
    this.drop();
  }

  /** Frees its connection, if it has one. */
  drop(): void {
    this.connection?.close();
    this.sending?.stop();
    this.end();
  }

  /** Its connection is no longer its own. */
  end(): void {
    this.connection = undefined;
    this.sending = undefined;
    this.watch?.stop();
    this.#signal.removeEventListener("abort", this.#leave);
  }

  /** The reason it was given up for, or what the network said in our own words. */
  errorFor(cause: unknown, message: string): unknown {
    if (this.#failed) return this.#error ?? cause;
    if (cause instanceof GatewayError) return cause;
    return new GatewayError("upstream", cause instanceof BrokenAnswer ? BROKEN : message, { cause });
  }
}

const BROKEN = "Cannot read the upstream's answer: it is not proper HTTP";

/** An answer whose head has come, and the connection that it comes on. */
interface Reached {
  connection: Connection;
  sending: Sending;
  head: Head;
  following: Following;
}

/**
 * Sends a request and reads the answer's head. A kept connection that dies before the request has left it whole is replaced
 * by a new one, once: nobody can have begun what did not arrive.
 */
async function reach(call: Call, { pool, packed }: { pool: Pool; packed: Packed }): Promise<Reached> {
  for (let kept = pool.take();; kept = undefined) {
    const connection = kept ?? await open(call, pool);
    // It may have been given up between two steps.
    if (call.failed) {
      connection.close();
      throw new ConnectionEnded();
    }
    const sending = startSending(connection, packed, (error) => call.fail(bodyError(error)));
    call.connection = connection;
    call.sending = sending;
    try {
      const head = await readAnswerHead(connection);
      return { connection, sending, head, following: following(head, "POST") };
    } catch (error) {
      connection.close();
      const mayRepeat = kept !== undefined && !call.failed && !connection.received && !sending.pulled;
      if (mayRepeat) await sending.settled;
      if (!mayRepeat || sending.whole || call.failed) {
        call.drop();
        throw error;
      }
    }
  }
}

/** A new connection. @throws {GatewayError} `upstream`, with the fault `unreachable`; what the call was given up for */
async function open(call: Call, pool: Pool): Promise<Connection> {
  const opening = new AbortController();
  call.opening = opening;
  call.watch?.connecting();
  try {
    return await pool.open(opening.signal);
  } catch (cause) {
    throw new GatewayError("upstream", "Cannot reach the model's upstream", { cause, fault: "unreachable" });
  } finally {
    call.opening = undefined;
    call.watch?.connected();
  }
}

function bodyError(cause: unknown): GatewayError {
  return cause instanceof GatewayError
    ? cause
    : new GatewayError("upstream", "Cannot reach the model's upstream", { cause });
}

function pack(
  { pool, host, target }: Place,
  { headers, body, scratches }: {
    headers: Readonly<Record<string, string>>;
    body: string | ReadableStream<Uint8Array>;
    scratches: Scratches;
  },
): Packed {
  try {
    const all = { ...headers, "accept-encoding": "identity", "user-agent": "sluice" };
    return packRequest({ method: "POST", target, host, headers: all, closes: !pool.keeps }, { body, scratches });
  } catch (cause) {
    throw new GatewayError("upstream", "Cannot reach the model's upstream", { cause });
  }
}

function refuseCompressed(answer: Answer): void {
  const encoding = answer.header("content-encoding");
  if (encoding === null || encoding === "identity") return;
  answer.cancel();
  throw new GatewayError("upstream", "Cannot read the upstream's answer: it is compressed although nobody asked");
}

const decoder = new TextDecoder();

/** An answer, read off its connection when somebody asks for it and not before. */
class Answer implements Incoming {
  readonly #head: Head;
  readonly #following: Following;
  readonly #connection: Connection;
  readonly #sending: Sending;
  readonly #body: Body;
  readonly #call: Call;
  readonly #watch: Watch;
  readonly #pool: Pool;
  readonly #shared: Shared;
  #over = false;

  constructor(
    { head, following, connection, sending }: Reached,
    { call, watch, pool, shared }: { call: Call; watch: Watch; pool: Pool; shared: Shared },
  ) {
    this.#head = head;
    this.#following = following;
    this.#connection = connection;
    this.#sending = sending;
    this.#body = createBody(following.framing);
    this.#call = call;
    this.#watch = watch;
    this.#pool = pool;
    this.#shared = shared;
  }

  get status(): number {
    return this.#head.status;
  }

  header(name: string): string | null {
    return headerOf(this.#head, name.toLowerCase());
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#over) return undefined;
    if (this.#call.failed) throw this.#brokenOff(undefined);
    try {
      for (let waits = false;; waits = true) {
        const piece = this.#body.take(this.#connection);
        if (piece !== undefined) {
          this.#watch.progress();
          return piece;
        }
        if (this.#body.done) return void this.#complete();
        // What is about the framing is no progress.
        if (!waits) this.#watch.wait();
        if (!(await this.#connection.read())) this.#body.end();
      }
    } catch (cause) {
      throw this.#brokenOff(cause);
    }
  }

  async text(limitBytes: number): Promise<string> {
    const { left } = this.#body;
    if (left === undefined || this.#over || this.#call.failed) return await this.#gather(limitBytes);
    if (left > limitBytes) throw this.#tooLarge();
    const { start, end, buffer } = this.#connection;
    if (left <= end - start) {
      const text = decoder.decode(buffer.subarray(start, start + left));
      this.#body.take(this.#connection);
      this.#complete();
      return text;
    }
    return left <= SCRATCH_BYTES ? await this.#fill(left) : await this.#gather(limitBytes);
  }

  release(): void {
    if (this.#over) return;
    if (this.#call.failed) return this.cancel();
    try {
      while (this.#body.take(this.#connection) !== undefined);
    } catch {
      return this.cancel();
    }
    if (this.#body.done) return this.#complete();
    if (!this.#following.keeps || !this.#sending.whole) return this.cancel();
    this.#over = true;
    this.#call.end();
    const stop = () => {
      clearTimeout(timer);
      this.#shared.released.delete(stop);
      if (this.#body.done) this.#giveBack();
      else this.#close();
    };
    const timer = setTimeout(stop, REST_MS);
    this.#shared.released.add(stop);
    void this.#readRest().then(stop);
  }

  cancel(): void {
    if (this.#over) return;
    if (this.#body.done && !this.#call.failed) return this.#complete();
    this.#over = true;
    this.#call.drop();
  }

  /** The whole body at once, where its length is known and fits into a scratch. */
  async #fill(length: number): Promise<string> {
    const scratch = this.#shared.scratches.take(length);
    let size = 0;
    const first = this.#body.take(this.#connection);
    if (first !== undefined) {
      scratch.set(first);
      size = first.length;
    }
    try {
      while (size < length) {
        this.#watch.wait();
        const read = await this.#connection.readInto(scratch.subarray(size, length));
        this.#watch.progress();
        if (read === null) {
          this.#body.end();
          break;
        }
        this.#body.skip(read);
        size += read;
      }
    } catch (cause) {
      // Not given back: the runtime may still be writing into it.
      throw this.#brokenOff(cause);
    }
    this.#complete();
    const text = decoder.decode(scratch.subarray(0, size));
    this.#shared.scratches.give(scratch);
    return text;
  }

  /** Piece by piece, into bytes that grow. */
  async #gather(limitBytes: number): Promise<string> {
    const scratch = this.#shared.scratches.take(SCRATCH_BYTES);
    let bytes = scratch;
    let size = 0;
    for (let piece = await this.read(); piece !== undefined; piece = await this.read()) {
      if (size + piece.length > limitBytes) throw this.#tooLarge();
      if (size + piece.length > bytes.length) {
        const larger = new Uint8Array(bytes.length * 2);
        larger.set(bytes.subarray(0, size));
        bytes = larger;
      }
      bytes.set(piece, size);
      size += piece.length;
    }
    const text = decoder.decode(bytes.subarray(0, size));
    this.#shared.scratches.give(scratch);
    return text;
  }

  #tooLarge(): GatewayError {
    this.cancel();
    return new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
  }

  #brokenOff(cause: unknown): unknown {
    this.#over = true;
    this.#call.drop();
    return this.#call.errorFor(cause, "The upstream's answer broke off");
  }

  /** The answer is whole: the connection may carry the next. */
  #complete(): void {
    this.#over = true;
    this.#call.end();
    this.#giveBack();
  }

  #giveBack(): void {
    const { start, end } = this.#connection;
    // What follows an answer was asked for by nobody.
    if (!this.#following.keeps || !this.#sending.whole || start !== end) return this.#close();
    this.#pool.put(this.#connection, this.#following.keepsMs);
  }

  #close(): void {
    this.#connection.close();
    this.#sending.stop();
  }

  /** Resolves when the body came to its end, when that is too much, and when the connection is gone. */
  async #readRest(): Promise<void> {
    try {
      for (let bytes = 0; bytes <= REST_BYTES && !this.#body.done;) {
        if (!(await this.#connection.read())) return this.#body.end();
        for (let piece = this.#body.take(this.#connection); piece; piece = this.#body.take(this.#connection)) {
          bytes += piece.length;
        }
      }
    } catch {
      // The answer itself is complete.
    }
  }
}

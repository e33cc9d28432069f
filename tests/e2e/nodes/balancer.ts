/** A balancer over HTTP/1.1 that keeps connections to its nodes. It obeys `/readyz`, and asks nothing twice. */

/** Parts of a balancer. */
export interface BalancerParts {
  /** Origins of the nodes, such as `http://127.0.0.1:40123`. */
  nodes: readonly string[];
  /** Interval of checks of `/readyz`, in milliseconds. */
  checkMs: number;
  /** Looks in a row that take a node out, and that bring it back. */
  fall: number;
  rise: number;
}

/** A running balancer. */
export interface Balancer extends AsyncDisposable {
  readonly origin: string;
  /** Failures at or on the way to a node, one line each: its client saw an error. */
  readonly faults: readonly string[];
  /** True if requests go to the node. */
  isUp(node: string): boolean;
  /** Requests that it was given so far. */
  given(node: string): number;
}

/** Longest time for an answer to a check of `/readyz`, in milliseconds: a node that has ended refuses at once. */
const CHECK_PATIENCE_MS = 30_000;

/** Headers that are about one connection. */
const HOP = new Set(["connection", "keep-alive", "transfer-encoding", "host"]);

interface Member {
  node: string;
  port: number;
  isUp: boolean;
  /** Consecutive checks that contradict `isUp`. */
  strikes: number;
  given: number;
  /** Unused connections. */
  idle: Set<Line>;
}

/** Starts a balancer. No node is up until `/readyz` was 200 often enough. */
export function startBalancer({ nodes, checkMs, fall, rise }: BalancerParts): Balancer {
  const members = nodes.map((node): Member => (
    { node, port: Number(new URL(node).port), isUp: false, strikes: 0, given: 0, idle: new Set() }
  ));
  const faults: string[] = [];
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  let turn = 0;

  const looking = members.map(async (member) => {
    while (!isOver) {
      const isReady = await looksReady(member.port);
      member.strikes = isReady === member.isUp ? 0 : member.strikes + 1;
      if (member.strikes >= (member.isUp ? fall : rise)) {
        member.isUp = isReady;
        member.strikes = 0;
        if (!isReady) { for (const line of member.idle) line.close(); }
      }
      await pause(checkMs, ended.promise);
    }
  });

  function refuse(status: number, fault: string): Response {
    faults.push(fault);
    return new Response(fault, { status });
  }

  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const body = new Uint8Array(await request.arrayBuffer());
    const up = members.filter(({ isUp }) => isUp);
    const member = up[turn++ % up.length];
    if (member === undefined) return refuse(503, "No node is up");
    member.given++;
    const [kept] = member.idle;
    try {
      const line = kept ?? await Line.open(member.port);
      member.idle.delete(line);
      const { status, headers } = await line.ask(request, body);
      return new Response(
        ReadableStream.from(passed(line, {
          over: (isKept) => {
            if (isKept && member.isUp) line.rest(member.idle);
            else line.close();
          },
          failed: (fault) => faults.push(`${member.node}: ${fault}`),
        })),
        { status, headers: headers.filter(([name]) => !HOP.has(name)) },
      );
    } catch (error) {
      return refuse(502, `${member.node} on a ${kept === undefined ? "new" : "kept"} connection: ${error}`);
    }
  });

  return {
    origin: `http://127.0.0.1:${server.addr.port}`,
    faults,
    isUp: (node) => members.some((member) => member.node === node && member.isUp),
    given: (node) => members.find((member) => member.node === node)?.given ?? 0,
    async [Symbol.asyncDispose]() {
      isOver = true;
      ended.resolve();
      await Promise.all([server.shutdown(), ...looking]);
      for (const { idle } of members) for (const line of idle) line.close();
    },
  };
}

/** The body of an answer. Where the node breaks off, so does it. */
async function* passed(
  line: Line,
  { over, failed }: { over: (isKept: boolean) => void; failed: (fault: string) => void },
): AsyncGenerator<Uint8Array> {
  let isWhole = false;
  try {
    yield* line.body();
    isWhole = true;
  } catch (error) {
    failed(String(error));
    throw error;
  } finally {
    over(isWhole && line.isKept);
  }
}

async function looksReady(port: number): Promise<boolean> {
  try {
    const line = await Line.open(port);
    const patience = setTimeout(() => line.close(), CHECK_PATIENCE_MS);
    try {
      const request = new Request(`http://127.0.0.1:${port}/readyz`);
      return (await line.ask(request, new Uint8Array())).status === 200;
    } finally {
      clearTimeout(patience);
      line.close();
    }
  } catch {
    return false;
  }
}

/** A connection to a node, on which one request follows the other. */
class Line {
  readonly #connection: Deno.TcpConn;
  #read = new Uint8Array();
  #reading: Promise<boolean> | undefined;
  #length: number | "chunked" | "rest" = 0;
  /** True if another request may follow once the answer is over. */
  isKept = true;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
    connection.setNoDelay(true);
  }

  static async open(port: number): Promise<Line> {
    return new Line(await Deno.connect({ hostname: "127.0.0.1", port }));
  }

  close(): void {
    try {
      this.#connection.close();
    } catch {
      // It is closed.
    }
  }

  /** Waits among the idle ones, and leaves them when the node closes it. */
  rest(idle: Set<Line>): void {
    idle.add(this);
    this.#reading = this.#receive().catch(() => false);
    void this.#reading.then((isMore) => {
      if (isMore || !idle.delete(this)) return;
      this.close();
    });
  }

  /** Sends a request and reads the head of its answer. @throws where the connection ends before that */
  async ask(request: Request, body: Uint8Array): Promise<{ status: number; headers: [string, string][] }> {
    const { pathname, search } = new URL(request.url);
    const headers = [...request.headers].filter(([name]) => !HOP.has(name) && name !== "content-length");
    const head = [
      `${request.method} ${pathname}${search} HTTP/1.1`,
      `host: balancer`,
      ...headers.map(([name, value]) => `${name}: ${value}`),
      ...(request.method === "GET" ? [] : [`content-length: ${body.byteLength}`]),
    ];
    await this.#send(new Uint8Array([...new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n`), ...body]));
    const [start = "", ...lines] = (await this.#until("\r\n\r\n")).split("\r\n");
    const answered = lines.map((line): [string, string] => {
      const at = line.indexOf(":");
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
    });
    const of = new Map(answered);
    this.isKept = of.get("connection") !== "close";
    const length = of.get("content-length");
    if (of.get("transfer-encoding") === "chunked") this.#length = "chunked";
    else this.#length = length === undefined ? "rest" : Number(length);
    return { status: Number(start.split(" ")[1]), headers: answered };
  }

  /** The body of the answer whose head was read. @throws where the connection ends before it does */
  async *body(): AsyncGenerator<Uint8Array> {
    if (this.#length === "rest") throw new Error("Cannot read the answer: its head does not tell how long it is");
    if (this.#length !== "chunked") return yield* this.#take(this.#length);
    for (;;) {
      const size = Number.parseInt(await this.#until("\r\n"), 16);
      if (size === 0) break;
      yield* this.#take(size);
      await this.#until("\r\n");
    }
    await this.#until("\r\n");
  }

  async *#take(length: number): AsyncGenerator<Uint8Array> {
    let left = length;
    while (left > 0) {
      if (this.#read.byteLength === 0) await this.#more();
      const piece = this.#read.subarray(0, left);
      this.#read = this.#read.subarray(piece.byteLength);
      left -= piece.byteLength;
      yield piece;
    }
  }

  /** The text before a mark; the mark is consumed. */
  async #until(mark: string): Promise<string> {
    for (;;) {
      const text = new TextDecoder("latin1").decode(this.#read);
      const at = text.indexOf(mark);
      if (at >= 0) {
        this.#read = this.#read.subarray(at + mark.length);
        return text.slice(0, at);
      }
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const reading = this.#reading ?? this.#receive();
    this.#reading = undefined;
    if (!await reading) throw new Error("Cannot read the answer: the node closed the connection");
  }

  /** False at the end of the connection. */
  async #receive(): Promise<boolean> {
    const piece = new Uint8Array(65_536);
    const count = await this.#connection.read(piece);
    if (count === null) return false;
    const all = new Uint8Array(this.#read.byteLength + count);
    all.set(this.#read);
    all.set(piece.subarray(0, count), this.#read.byteLength);
    this.#read = all;
    return true;
  }

  async #send(bytes: Uint8Array): Promise<void> {
    for (let sent = 0; sent < bytes.byteLength;) sent += await this.#connection.write(bytes.subarray(sent));
  }
}

/** Waits so long, or until something else is so. */
async function pause(ms: number, over: Promise<void>): Promise<void> {
  const waited = Promise.withResolvers<void>();
  const timer = setTimeout(waited.resolve, ms);
  await Promise.race([waited.promise, over]);
  clearTimeout(timer);
}

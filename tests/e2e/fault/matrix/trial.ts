/** One cell of the matrix: a request that meets a fault, and everything that must be so afterwards. */
import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../../lib/json/mod.ts";
import type { Protocol } from "../../../../lib/protocols/canonical/types.ts";
import type { TransportKind } from "../../../../lib/upstreams/select_transport.ts";
import { assertSameBill, streamedBill, wholeBill } from "../../request/bills.ts";
import { REPORTED } from "../../../upstream/frames.ts";
import { model, startGateway, type TestGateway, upstream } from "../../../support/gateway.ts";
import type { Seen, WireFault } from "./fault.ts";
import { FAULTS, NOTHING_WRONG } from "./faults.ts";
import { PIECES, SPOKEN } from "./sound_answer.ts";
import { type Got, seenOf } from "./seen.ts";
import { asking, startWire, type Wire } from "./wire.ts";
import { CLOSED_PORT } from "../../../support/closed_port.ts";
import { until } from "../../../support/soon.ts";

/** Place of a fault. */
export interface Cell {
  fault: WireFault;
  /** The client's protocol, and the upstream's fault. */
  client: Protocol;
  spoken: Protocol;
  stream: boolean;
}

/** Result of a trial. */
export interface Outcome {
  seen: Seen;
  /** Milliseconds until the client had all of its answer. */
  ms: number;
  /** Bytes that the upstream got rid of. */
  sent: number;
  /** Largest growth of the process's memory meanwhile, in bytes; 0 if not measured. */
  grown: number;
}

/** A gateway and its upstream, with which the cells of the matrix are tried one after the other. */
export interface Bench extends AsyncDisposable {
  gateway: TestGateway;
  wire: Wire;
  /** Tries one cell. @throws {AssertionError} if something is not as it must be */
  meet(cell: Cell): Promise<Outcome>;
}

/** Time limits for faults that must run into them, in milliseconds. */
export const SHORT = { first_byte_ms: 500, idle_ms: 500, total_ms: 1_000 };

/** USD per token: every successful answer has a cost. */
const PRICING = { prompt: "0.000001", completion: "0.000002", input_cache_read: "0.0000001" };

const VENDORS: Readonly<Record<Protocol, string>> = {
  chat: "openai",
  responses: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** Longest time for any answer, in milliseconds: far more than every limit here. */
const PATIENCE_MS = 60_000;

/** Largest allowed memory growth while an upstream floods the gateway, in bytes, uncollected garbage included. */
const FLOOD_BYTES = 256 * 1024 ** 2;

/** Starts a gateway with this transport. */
export function startBench(transport: TransportKind): Bench {
  const wire = startWire(
    new Map(FAULTS.flatMap(({ name, play, resets = false }) => play === undefined ? [] : [[name, { play, resets }]])),
    () => read.promise,
  );
  let read = Promise.withResolvers<void>();
  const gateway = startGateway({
    upstreams: Object.fromEntries(SPOKEN.flatMap((spoken) => {
      const more = { protocols: [spoken], transport };
      return [
        [spoken, upstream(VENDORS[spoken], wire.url, more)],
        [`${spoken}-nobody`, upstream(VENDORS[spoken], `http://127.0.0.1:${CLOSED_PORT}`, more)],
      ];
    })),
    models: SPOKEN.flatMap((spoken) => {
      const target = { model: "real-one", upstream: spoken };
      return [
        model(`acme/${spoken}`, [target], { pricing: PRICING }),
        model(`acme/${spoken}-short`, [{ ...target, timeouts: SHORT }], { pricing: PRICING }),
        model(`acme/${spoken}-nobody`, [{ ...target, upstream: `${spoken}-nobody` }], { pricing: PRICING }),
      ];
    }),
    groups: { default: { key_limits: { concurrency: 1 }, key_budget: { usd: "1000", period: "total" } } },
  }, { described: false });

  async function ask(cell: Cell): Promise<Got> {
    read = Promise.withResolvers();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error("There was no whole answer in time")), PATIENCE_MS);
    try {
      return await readAnswer(await gateway.ask(cell.client, bodyOf(cell), { signal: late.signal }));
    } finally {
      clearTimeout(timer);
    }
  }

  async function readAnswer({ status, headers, body }: Response): Promise<Got> {
    let text = "";
    let isRead = false;
    for await (const piece of (body ?? new Blob().stream()).pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (isRead || !text.includes(PIECES[0]?.trim() ?? "")) continue;
      isRead = true;
      read.resolve();
    }
    return { status, headers, text };
  }

  async function meet(cell: Cell): Promise<Outcome> {
    const { fault, client, stream } = cell;
    const before = { sent: wire.sent, heard: wire.heard };
    const memory = fault.floods === true ? watchMemory() : undefined;
    const start = performance.now();
    const got = await ask(cell);
    const ms = performance.now() - start;
    const about = `${describe(cell)}\n${got.status} ${got.text.slice(0, 1_500)}`;
    try {
      const seen = seenOf(got, { protocol: client, stream, endless: fault.floods === true });
      await until("the upstream is let go", () => wire.busy === 0);
      await checkBill(cell, { got, seen });
      await checkNothingLeft();
      // `fetch` retries by itself where a kept connection ends before a head.
      const most = fault.again === true || transport === "fetch" ? 2 : 1;
      assert(wire.heard - before.heard <= most, "the upstream was asked again");
      const grown = await memory?.end() ?? 0;
      assert(grown <= FLOOD_BYTES, `memory grew by ${Math.round(grown / 1024 ** 2)} MiB`);
      const wanted = expected(cell, transport);
      assert(wanted.includes(seen), `seen: ${seen}, expected: ${wanted}`);
      return { seen, ms, sent: wire.sent - before.sent, grown };
    } catch (error) {
      throw new Error(about, { cause: error });
    } finally {
      await memory?.end();
    }
  }

  /**
   * Asserts that the ledger has one entry for the request, with the status and bill its client saw, and that failures
   * cost nothing.
   */
  async function checkBill(
    { fault, client, stream }: Cell,
    { got, seen }: { got: { headers: Headers; text: string }; seen: Seen },
  ): Promise<void> {
    await gateway.gateway.backgroundTasks.done();
    await gateway.gateway.ledger.flush();
    const fresh = await gateway.store.ledger.entries({ after: entered, limit: 10 });
    assertEquals(fresh.map(({ id }) => `req_${id}`), [got.headers.get("x-request-id")], "entries");
    const [entry] = fresh;
    assert(entry !== undefined);
    entered = entry.seq;
    if (seen !== "answer") return assertEquals(entry.cost, 0n, "a failure costs something");
    const { prompt, input_cache_read, completion } = entry.tokens;
    const cost = BigInt(prompt) * 1_000_000n + BigInt(input_cache_read) * 100_000n + BigInt(completion) * 2_000_000n;
    // Cost above the request's hold is not charged to the customer.
    if (fault.counted === "either") return assert(entry.cost <= cost, "the bill is too high");
    assertEquals(entry.cost, cost, "the bill");
    const bill = stream
      ? streamedBill(client, got.text)
      : wholeBill(client, new Response(null, { headers: got.headers }), got.text);
    // Chat clients get the usage of a stream if they ask for it, as these do.
    assertSameBill(bill, entry, "what the client is told");
    assertEquals(entry.source, fault.counted === "gateway" ? "counted" : "upstream", "who counted");
    if (fault.counted === undefined) assertEquals({ prompt, input_cache_read, completion }, REPORTED, "tokens");
  }

  let entered = 0;

  async function checkNothingLeft(): Promise<void> {
    assertEquals(await gateway.store.ledger.holds(), [], "money is held");
    const claim = {
      name: `key:${gateway.key.id}`,
      unit: "concurrency" as const,
      limit: 1,
      cost: 1,
      reportOnly: false,
    };
    const [status] = await gateway.gateway.limiter.statuses([claim]);
    assertEquals(status?.remaining, 1, "a slot is taken");
    assertEquals(gateway.gateway.inFlight.count(), 0, "a request is under way");
    assertEquals(gateway.logs.filter(({ level }) => level === "error"), [], "errors in the log");
    // Upstream faults are logged; these lines are not under test here.
    gateway.logs.length = 0;
  }

  return {
    gateway,
    wire,
    async meet(cell) {
      const outcome = await meet(cell);
      // The next request is answered, and with its own answer.
      if (cell.fault !== NOTHING_WRONG) await meet({ ...cell, fault: NOTHING_WRONG });
      return outcome;
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
}

/** The expected outcome. Clients of messages get a status of their own for overload. */
export function expected({ fault, client, spoken, stream }: Cell, transport: TransportKind): readonly Seen[] {
  const kind = stream ? "streamed" : "whole";
  const seen = fault.of?.[spoken]?.[kind] ?? (transport === "fetch" ? fault.overFetch?.[kind] : undefined) ??
    fault[kind];
  const wanted: readonly Seen[] = typeof seen === "object" ? seen : [seen];
  return wanted.map((seen) => seen === 503 && client === "messages" ? 529 : seen);
}

/** Short description of a cell. */
export function describe({ fault, client, spoken, stream }: Cell): string {
  return `${fault.name}: ${client} over ${spoken}, ${stream ? "streamed" : "whole"}`;
}

function bodyOf({ fault, client, spoken, stream }: Cell): JsonObject {
  const kind = fault.play === undefined ? "-nobody" : fault.stalls === true ? "-short" : "";
  const body = { model: `acme/${spoken}${kind}`, stream };
  const text = asking(fault.name);
  if (client === "responses") return { ...body, input: text };
  if (client === "gemini") return { ...body, contents: [{ role: "user", parts: [{ text }] }] };
  const messages = [{ role: "user", content: text }];
  return client === "chat"
    ? { ...body, messages, ...(stream && { stream_options: { include_usage: true } }) }
    : { ...body, messages, max_tokens: 1_000 };
}

/** Watches the memory of the process; `end` returns its largest growth. */
function watchMemory(): { end(): Promise<number> } {
  const start = Deno.memoryUsage().rss;
  let most = start;
  const look = () => void (most = Math.max(most, Deno.memoryUsage().rss));
  const timer = setInterval(look, 5);
  return {
    end() {
      clearInterval(timer);
      look();
      return Promise.resolve(most - start);
    },
  };
}

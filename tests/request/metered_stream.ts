import { createMemoryLimiter } from "../../lib/limits/memory_limiter.ts";
import { BackgroundTasks } from "../../lib/billing/in_flight_requests.ts";
import { createLedger } from "../../lib/billing/ledger.ts";
import { Meter } from "../../lib/billing/meter.ts";
import { pricesAt } from "../../lib/billing/price.ts";
import type { GatewayError } from "../../lib/errors.ts";
import { modelSchema, type Target } from "../../lib/catalog/model.ts";
import { loadTokenCounter } from "../../lib/o200k/mod.ts";
import { StreamMeter } from "../../lib/request/stream_meter.ts";
import { TargetMeasurement } from "../../lib/request/attempts.ts";
import { forgivingHealth } from "../support/forgiving.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { Step } from "../../lib/upstreams/upstream.ts";
import { entriesOf } from "../e2e/request/world.ts";
import { plainModel } from "../support/plain_model.ts";

/** A stream under a real meter. */
export interface MeteredStream {
  stream: StreamMeter;
  measurement: TargetMeasurement;
  meter: Meter;
  /** Failures that the stream meter reported. */
  failures: GatewayError[];
  /** The gateway itself ends the stream. */
  interrupt(): void;
  /** Reads one step, and takes it as sent. */
  pass(step: Step): Promise<void>;
  /** Ending, status and tokens of the ledger's entry. */
  entry(): Promise<unknown[]>;
}

/** A stream whose steps are given by a test, under a real meter. */
export async function meteredStream({ countInput = () => Promise.resolve(7) } = {}): Promise<MeteredStream> {
  // Loading the module takes turns of the event loop, which must not happen during a test.
  await loadTokenCounter();
  const store = openMemoryStore();
  const monotonic = () => 0;
  const now = () => 0;
  const log = () => {};
  const ledger = createLedger({ store: store.ledger, now, monotonic, log });
  const limiter = createMemoryLimiter({ monotonic });
  const backgroundTasks = new BackgroundTasks();
  const model = modelSchema.parse(plainModel({
    pricing: { prompt: "0.000001", completion: "0.000001" },
    targets: [{ upstream: "one", model: "m" }],
  }));
  const meter: Meter = new Meter({ ledger, limiter, now, monotonic, log }, {
    id: "a",
    keyId: "key_a",
    group: "default",
    endpoint: "chat",
  });
  await meter.admit({
    model,
    sheet: pricesAt(model, { factor: "1", now: 0 }).sheet,
    limitRequests: [],
    budgets: [],
    maxCost: 1n,
    forMs: 1,
  });
  meter.entry.beginAttempt("one");
  const failures: GatewayError[] = [];
  const request = { clientHasDisconnected: false, isInterrupted: false };
  const stream = new StreamMeter({
    meter,
    backgroundTasks,
    codec: chat,
    prompt: { messages: [] },
    countInput,
    request,
    noteFailure: (error) => void failures.push(error),
  });
  const [target] = model.targets as [Target];
  const permit = { target, key: "a", isTrial: false, tickets: { all: { epoch: 0 }, client: undefined } };
  const measurement = new TargetMeasurement({
    attempt: { model, target, permit },
    begunAt: 0,
    requestId: "a",
    entry: meter.entry,
    gateway: { health: forgivingHealth(), monotonic, now, log },
    signal: AbortSignal.abort(),
    answered: () => {},
  });
  return {
    stream,
    measurement,
    meter,
    failures,
    interrupt: () => void (request.isInterrupted = true),
    async pass(step: Step) {
      await stream.take(step);
      stream.sent();
    },
    async entry() {
      await backgroundTasks.done();
      await ledger.flush();
      const [entry] = await entriesOf(store.ledger, 1);
      return [entry?.ending, entry?.status, entry?.tokens.prompt, entry?.tokens.completion];
    },
  };
}

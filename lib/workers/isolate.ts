/** A worker: a gateway of its own on the port of the process, whose store and limits are the owner's. */
import { keepRunning } from "../cli/guard.ts";
import { listen, type Server } from "../cli/listen.ts";
import { createLog } from "../cli/log.ts";
import { shutDown } from "../cli/shutdown.ts";
import type { Config } from "../config.ts";
import type { ConfigStatus } from "../config/reloader.ts";
import {
  closeGateway,
  createGateway,
  type Gateway,
  renewGateway,
  retireGateway,
  stopRequests,
  stopTexts,
} from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import { createDrain } from "../server/drain.ts";
import type { Route } from "../server/router.ts";
import { listenersOf } from "../server/surface.ts";
import type { Limiter } from "../limits/limiter.ts";
import { isolateHealth } from "../request/health.ts";
import { metricsText } from "../request/metrics.ts";
import { type Isolate, OWNER, type OwnerState, WORKER, type WorkerStart } from "./contract.ts";
import { createWorkerDoors } from "./doors.ts";
import { unpackConfig } from "./packed.ts";
import { createRepeats } from "./repeats.ts";
import { openWorkerStore } from "./worker_store.ts";
import type { Wire } from "./wire.ts";

/** Time between two rounds of what is done from time to time, in milliseconds. */
const SWEEP_MS = 60_000;

/** Offers an isolate to the owner at the other end. It does nothing before it is started. */
export function offerIsolate(wire: Wire, routes: readonly Route[]): void {
  let serving: Serving | undefined;
  const started = (): Serving => {
    if (serving === undefined) throw new TypeError("Cannot do this: the worker has not been started");
    return serving;
  };
  wire.offer(WORKER.isolate, {
    async start(start) {
      serving = await serve(wire, { start, routes });
      const { hostname, port } = serving.server.addr;
      return { hostname, port };
    },
    renew: (config, status) => started().renew(unpackConfig(config), status),
    learn: (state) => started().learn(state),
    metrics: () => metricsText(started().current()),
    health: () => isolateHealth(started().current()),
    running() {
      const { running } = started().current();
      return { text: running.count("text"), images: running.count("images") };
    },
    end: (times) => started().end(times),
    cut: () => started().cut(),
    ping: () => {},
  });
}

/** An isolate that serves. */
interface Serving extends Pick<Isolate, "end" | "cut" | "learn"> {
  server: Server;
  current: () => Gateway;
  renew(config: Config, status: ConfigStatus): void;
}

async function serve(
  wire: Wire,
  { start, routes }: { start: WorkerStart; routes: readonly Route[] },
): Promise<Serving> {
  const config = unpackConfig(start.config);
  const office = wire.remote(OWNER.office);
  let { state, status } = start;
  const log = createLog({
    write: batched((lines) => wire.told(OWNER.office).log(lines)),
    now: Date.now,
    level: () => gateway.config.log.level,
  });
  const store = await openWorkerStore(wire, { address: config.store, state: () => state });
  const repeats = createRepeats(wire.remote(OWNER.repeats), wire.told(OWNER.repeats));
  const doors = createWorkerDoors({
    keeper: wire.remote(OWNER.door),
    told: wire.told(OWNER.door),
    monotonic: () => performance.now(),
  });
  wire.offer(WORKER.repeats, repeats.work);
  wire.offer(WORKER.door, doors.news);
  let gateway = createGateway({
    config,
    store,
    limiter: remoteLimiter(wire, () => state),
    idempotency: repeats.idempotency,
    now: Date.now,
    log,
    reloader: { status: () => status, reload: (trigger) => office.reload(trigger) },
    isolates: start.isolates,
    whole: { metrics: () => office.metrics(), health: () => office.health() },
  });
  const current = () => gateway;
  const drain = createDrain();
  const [clients] = listenersOf(config);
  const server = listen(current, {
    routes,
    drain,
    senders: doors.senders,
    listener: { ...clients, port: start.port },
    shared: true,
  });
  keepRunning(log);
  gateway.observer.loop.start();
  const sweeping = setInterval(() => void flushKeys(gateway), SWEEP_MS);
  const cut = Promise.withResolvers<void>();
  return {
    server,
    current,
    renew(config, next) {
      // A configuration that was refused leaves the one in force, and says why.
      if (next.version !== status.version) {
        const old = gateway;
        gateway = renewGateway(old, config);
        void retireGateway(old);
      }
      status = next;
    },
    learn(next) {
      state = next;
    },
    cut: () => cut.resolve(),
    async end(times) {
      const outcome = await shutDown({
        server,
        drain,
        running: gateway.running,
        stopTexts: () => stopTexts(gateway),
        stopAll: () => stopRequests(gateway),
        second: cut.promise,
        times,
        // The owner tells of the end.
        log: () => {},
      });
      clearInterval(sweeping);
      await flushKeys(gateway);
      await closeGateway(gateway);
      await store.close();
      return outcome;
    },
  };
}

/** The owner's limits. They stay open when a worker ends. */
function remoteLimiter(wire: Wire, state: () => OwnerState): Limiter {
  return {
    ...wire.remote(OWNER.limiter),
    get healthy() {
      return state().limitsHealthy;
    },
    get othersHeardMs() {
      return state().othersHeardMs;
    },
    close: () => Promise.resolve(),
  };
}

/** Lines of one turn of the event loop go together. */
function batched(send: (lines: string[]) => void): (line: string) => void {
  let waiting: string[] = [];
  return (line) => {
    waiting.push(line);
    if (waiting.length > 1) return;
    queueMicrotask(() => {
      const lines = waiting;
      waiting = [];
      send(lines);
    });
  };
}

async function flushKeys({ keys, log }: Gateway): Promise<void> {
  try {
    await keys.flush();
  } catch (error) {
    log({ level: "warn", event: "key_use_not_kept", ...describeCause(error) });
  }
}

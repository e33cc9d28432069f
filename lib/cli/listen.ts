/** Opens the listeners of a gateway, or explains to the operator why that fails. */
import { messageOf } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { createApp } from "../server/app.ts";
import type { App, AppOptions } from "../server/exchange.ts";
import { describeCause } from "../causes.ts";
import { createClientTracker } from "../server/client_tracker.ts";
import type { Drain } from "../server/drain.ts";
import { type Listener, listenersOf } from "../server/surface.ts";
import { startTimer } from "../start_timer.ts";

/** The server of a listener. */
export interface Server {
  readonly addr: Deno.NetAddr;
  /** Closes the port, and resolves when all connections have ended. */
  shutdown(): Promise<void>;
}

/** A port that cannot be opened. The message is for the operator. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** The parts of a server. */
export interface ListenParts extends Pick<AppOptions, "routes" | "clients"> {
  listener: Listener;
  drain: Drain;
}

/** Opens all listeners, the clients' first; if one fails, none stays open. @throws {ListenError} if one fails */
export async function listenAll(
  current: () => Gateway,
  options: Pick<ListenParts, "routes" | "drain">,
): Promise<[Server, ...Server[]]> {
  const parts = { ...options, clients: createClientTracker({ monotonic: () => performance.now() }) };
  const [clientListener, ...others] = listenersOf(current().config, current());
  const servers: [Server, ...Server[]] = [listen(current, { ...parts, listener: clientListener })];
  try {
    for (const listener of others) servers.push(listen(current, { ...parts, listener }));
    return servers;
  } catch (error) {
    await shutdownAll(servers);
    throw error;
  }
}

/** Closes the listeners, and resolves when all connections have ended. */
export async function shutdownAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map((server) => server.shutdown()));
}

/**
 * Opens a listener.
 * @param current returns the gateway that serves a new request; it changes when the configuration is reloaded
 * @throws {ListenError} if the address cannot be used
 */
export function listen(current: () => Gateway, { listener, ...parts }: ListenParts): Server {
  const { hostname, port, reusePort, surface } = listener;
  if (reusePort && Deno.build.os !== "linux") {
    throw new ListenError(
      "Cannot share a port: only Linux spreads connections over processes; set listen.reuse_port to false",
    );
  }
  const timers = new PhaseTimers({ lingers: true });
  const app: App = createApp({ ...parts, surface, gateway: current, timers });
  const open = (port: number) =>
    Deno.serve({
      hostname,
      port,
      reusePort,
      // The default prints the address, which the start text has already.
      onListen: () => {},
      onError: (error) => {
        current().log({ level: "error", event: "response_failed", ...describeCause(error) });
        return new Response(null, { status: 500 });
      },
    }, app);
  try {
    const server = new ReopenedServer(open, { port, drain: parts.drain, log: (entry) => current().log(entry) });
    return {
      addr: server.addr,
      shutdown: () => server.shutdown().finally(() => timers.close()),
    };
  } catch (cause) {
    throw cannotListen(listener, cause);
  }
}

/** Time until a port is opened again after a failure, in milliseconds. */
const REOPEN_MS = 1_000;

/**
 * A server that opens its port again. The runtime closes the port at the first connection that it cannot accept, such
 * as for lack of file descriptors.
 */
class ReopenedServer implements Server {
  readonly addr: Deno.NetAddr;
  readonly #open: (port: number) => Deno.HttpServer<Deno.NetAddr>;
  readonly #parts: Pick<ListenParts, "drain"> & Pick<Gateway, "log">;
  /** Servers that may still have connections. Only the last one may listen on the port. */
  readonly #servers = new Set<Deno.HttpServer>();
  #cancelReopening = () => {};
  #isShutDown = false;

  constructor(
    open: (port: number) => Deno.HttpServer<Deno.NetAddr>,
    { port, ...parts }: { port: number } & Pick<ListenParts, "drain"> & Pick<Gateway, "log">,
  ) {
    this.#open = open;
    this.#parts = parts;
    this.addr = this.#start(port);
  }

  async shutdown(): Promise<void> {
    this.#isShutDown = true;
    this.#cancelReopening();
    await Promise.all([...this.#servers].map((server) => server.shutdown()));
  }

  #start(port: number): Deno.NetAddr {
    const server = this.#open(port);
    this.#servers.add(server);
    server.finished.catch((cause) => this.#replace(server, cause));
    return server.addr;
  }

  #replace(failed: Deno.HttpServer, cause: unknown): void {
    if (this.#isShutDown) return;
    const { drain, log } = this.#parts;
    log({ level: "error", event: "listener_failed", port: this.addr.port, ...describeCause(cause) });
    // This closes idle connections, which frees their file descriptors: the listener may have failed for lack of them.
    void drain.arrived().then(() => failed.shutdown()).finally(() => this.#servers.delete(failed));
    this.#reopenLater();
  }

  #reopenLater(): void {
    this.#cancelReopening = startTimer(() => {
      try {
        this.#start(this.addr.port);
        this.#parts.log({ level: "info", event: "listener_reopened", port: this.addr.port });
      } catch {
        this.#reopenLater();
      }
    }, REOPEN_MS);
  }
}

function cannotListen({ hostname, port, surface }: Listener, cause: unknown): ListenError {
  const isAdmin = surface === "admin";
  const change = isAdmin ? "choose another one with --admin-port" : "choose another one with --port";
  const what = isAdmin ? " for the admin side" : "";
  return new ListenError(`Cannot listen on ${hostname}:${port}${what}: ${reasonOf(cause, change)}`, { cause });
}

function reasonOf(error: unknown, change: string): string {
  if (error instanceof Deno.errors.AddrInUse) return `the port is in use; ${change}`;
  if (error instanceof Deno.errors.PermissionDenied) return "the system does not allow it; choose a port from 1024 on";
  return messageOf(error);
}

/** Opens the listeners of a gateway, or explains to the operator why that fails. */
import { messageOf } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { createApp } from "../server/app.ts";
import type { App, AppOptions } from "../server/exchange.ts";
import { describeCause } from "../server/cause.ts";
import { createClientTracker } from "../server/client_tracker.ts";
import { type Listener, listenersOf } from "../server/surface.ts";

/** The server of a listener. */
export type Server = Deno.HttpServer<Deno.NetAddr>;

/** A port that cannot be opened. The message is for the operator. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** The parts of a server. */
export interface ListenParts extends Pick<AppOptions, "routes" | "drain" | "clients"> {
  listener: Listener;
}

/** Opens all listeners, the clients' first; if one fails, none stays open. @throws {ListenError} if one fails */
export async function listenAll(
  current: () => Gateway,
  options: Pick<AppOptions, "routes" | "drain">,
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
  const timers = new PhaseTimers();
  const app: App = createApp({ ...parts, surface, gateway: current, timers });
  try {
    const server = Deno.serve({
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
    // The timer stays armed between requests: arming and clearing it costs 15,000 instructions per request.
    timers.hold();
    const release = () => timers.release();
    server.finished.then(release, release);
    return server;
  } catch (cause) {
    throw cannotListen(listener, cause);
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

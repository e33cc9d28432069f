/** Opens the ports of a gateway, or explains to the operator why that fails. */
import { messageOf } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { createApp } from "../server/app.ts";
import type { App, AppOptions } from "../server/exchange.ts";
import { describeCause } from "../server/cause.ts";
import { createClientTracker } from "../server/client_tracker.ts";
import { type Listener, listenersOf } from "../server/surface.ts";

/** A listener's server. */
export type Server = Deno.HttpServer<Deno.NetAddr>;

/** A port that cannot be opened. The message is for the operator. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** The parts of a server. */
export interface ListenParts extends Pick<AppOptions, "routes" | "drain" | "clients"> {
  listener: Listener;
}

/** Opens every listener, or none of them: that of the clients first. @throws {ListenError} */
export async function listenAll(
  current: () => Gateway,
  options: Pick<AppOptions, "routes" | "drain">,
): Promise<[Server, ...Server[]]> {
  const parts = { ...options, clients: createClientTracker({ monotonic: () => performance.now() }) };
  const [clients, ...others] = listenersOf(current().config, current());
  const servers: [Server, ...Server[]] = [listen(current, { ...parts, listener: clients })];
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

/** Serves the gateway of the moment. @throws {ListenError} */
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
      // The start text has the address.
      onListen: () => {},
      onError: (error) => {
        current().log({ level: "error", event: "response_failed", ...describeCause(error) });
        return new Response(null, { status: 500 });
      },
    }, app);
    // Keeps the timer running between requests: starting and stopping it costs 15,000 instructions per request.
    timers.hold();
    const leave = () => timers.release();
    server.finished.then(leave, leave);
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

/** Opens the ports of a gateway, and tells the operator why one cannot be opened. */
import { messageOf } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { Alarms } from "../server/alarms.ts";
import { type App, type AppOptions, createApp } from "../server/app.ts";
import { describeCause } from "../server/cause.ts";
import type { Listener } from "../server/surface.ts";

/** A listener's server. */
export type Server = Deno.HttpServer<Deno.NetAddr>;

/** A port that cannot be opened. The message is for the operator. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** What a listener serves. */
export interface Listening extends Pick<AppOptions, "routes" | "drain" | "senders"> {
  listener: Listener;
  /** True where others of this process listen on the same port, too: the system spreads the connections. */
  shared?: boolean;
}

/** Serves the gateway of the moment. @throws {ListenError} */
export function listen(current: () => Gateway, { listener, shared = false, ...parts }: Listening): Server {
  const { hostname, port, surface } = listener;
  const alarms = new Alarms();
  const app: App = createApp({ ...parts, surface, gateway: current, alarms });
  try {
    const server = Deno.serve({
      hostname,
      port,
      ...(shared && { reusePort: true }),
      // The address is told together with the key.
      onListen: () => {},
      onError: (error) => {
        current().log({ level: "error", event: "response_failed", ...describeCause(error) });
        return new Response(null, { status: 500 });
      },
    }, app);
    // Somebody may come at any time: a request that is alone starts and ends no timer, which costs 15,000 instructions.
    alarms.enter();
    const leave = () => alarms.leave();
    server.finished.then(leave, leave);
    return server;
  } catch (cause) {
    throw cannotListen(listener, cause);
  }
}

/**
 * Makes sure that nobody listens there. Those who share a port would share it with another program's, too, if that did
 * the same. @throws {ListenError}
 */
export function requireFree(listener: Listener): void {
  const { hostname, port } = listener;
  try {
    Deno.listen({ hostname, port }).close();
  } catch (cause) {
    throw cannotListen(listener, cause);
  }
}

function cannotListen({ hostname, port, surface }: Listener, cause: unknown): ListenError {
  const isAdmin = surface === "admin";
  const change = isAdmin ? 'choose another one as "admin.listen.port"' : "choose another one with --port";
  const what = isAdmin ? " for the admin side" : "";
  return new ListenError(`Cannot listen on ${hostname}:${port}${what}: ${whyNot(cause, change)}`, { cause });
}

function whyNot(error: unknown, change: string): string {
  if (error instanceof Deno.errors.AddrInUse) return `the port is in use; ${change}`;
  if (error instanceof Deno.errors.PermissionDenied) return "the system does not allow it; choose a port from 1024 on";
  return messageOf(error);
}

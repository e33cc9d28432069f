/** Services for handlers that keep the connection open after the request, as a WebSocket does. */
import type { Caller } from "../access/permissions.ts";
import type { BodyReservation } from "./body_budget.ts";
import type { Drain } from "./drain.ts";
import type { Exchange, ServerState } from "./exchange.ts";

/** The server, as an open connection sees it. */
export interface ConnectionHost {
  /**
   * Serves a request of the connection's client like any other request. Never rejects.
   * @param completed resolves when the whole answer has gone out
   */
  serve(request: Request, completed: Promise<void>): Promise<Response>;
  /** Shutdown state of the process. */
  drain: Pick<Drain, "arrive" | "connect" | "connections">;
  /** Reserves memory for messages that wait, in the budget of all request bodies. */
  waiting: Pick<BodyReservation, "release"> & {
    /** Reserves bytes. @throws {GatewayError} `limited` if all bodies, or those of this key, take too much memory */
    reserve(bytes: number): void;
  };
}

/** Creates the host of a connection. @throws {TypeError} if the app does not exist yet */
export function createConnectionHost(
  { info, settings: { limits: { budgetBytes } } }: Pick<Exchange, "info" | "settings">,
  { caller, server: { app, drain, budget } }: { caller: Caller | undefined; server: ServerState },
): ConnectionHost {
  if (app === undefined) throw new TypeError("Cannot open a connection: the app is not ready");
  // The request loses its address after the upgrade, so it is copied now.
  const remoteAddr = info?.remoteAddr;
  const reservation = budget.reservationFor(caller?.keyId);
  return {
    serve: (request, completed) => app(request, remoteAddr && { remoteAddr, completed }),
    drain,
    waiting: {
      reserve: (bytes) => reservation.reserve(bytes, budgetBytes),
      release: (bytes) => reservation.release(bytes),
    },
  };
}

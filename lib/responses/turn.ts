/** Turns of a connection: requests that came as its messages. */
import type { LocalResponses } from "../recall/recall.ts";

/** What a request of a connection has beside itself. */
export interface ConnectionTurn {
  /** Responses that only this connection can refer to. */
  local: LocalResponses;
  /** True: the client wants an id to continue from, and no answer. */
  isWarmUp: boolean;
}

const turns = new WeakMap<Request, ConnectionTurn>();

/** Makes a request one of a connection. */
export function setTurn(request: Request, turn: ConnectionTurn): void {
  turns.set(request, turn);
}

/** Returns what `setTurn` was given; absent for a request that came by itself. */
export function turnOf(request: Request): ConnectionTurn | undefined {
  return turns.get(request);
}

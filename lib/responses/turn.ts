/** Turns of a connection: requests that came as its messages. */
import type { LocalResponses } from "../recall/recall.ts";

/** Context of a request that came over a connection. */
export interface ConnectionTurn {
  /** Responses that only this connection can refer to. */
  local: LocalResponses;
  /** True: the client wants an id to continue from, and no answer. */
  isWarmUp: boolean;
}

const turns = new WeakMap<Request, ConnectionTurn>();

/** Marks a request as a turn of a connection. */
export function setTurn(request: Request, turn: ConnectionTurn): void {
  turns.set(request, turn);
}

/** Returns the turn of a request; absent without a connection. */
export function turnOf(request: Request): ConnectionTurn | undefined {
  return turns.get(request);
}

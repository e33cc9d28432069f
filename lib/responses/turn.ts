/** Marks requests that come from messages on a WebSocket. */
import type { LocalResponses } from "../recall/recall.ts";

/** Facts about a request that comes from a message on a connection (a turn). */
export interface ConnectionTurn {
  /** Responses that only this connection can refer to. */
  local: LocalResponses;
  /** True for a warm-up, which only stores the input and returns an id. */
  isWarmUp: boolean;
}

const turns = new WeakMap<Request, ConnectionTurn>();

/** Marks a request as a turn of a connection. */
export function setTurn(request: Request, turn: ConnectionTurn): void {
  turns.set(request, turn);
}

/** Returns the turn of a request; undefined for ordinary requests. */
export function turnOf(request: Request): ConnectionTurn | undefined {
  return turns.get(request);
}

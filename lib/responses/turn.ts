/** Turns: requests made by messages of a connection. */
import type { LocalResponses } from "../recall/recall.ts";

/** Context of a turn. */
export interface ConnectionTurn {
  /** Responses that only this connection can refer to. */
  local: LocalResponses;
  /** True: a warm-up that only stores the input and returns an id. */
  isWarmUp: boolean;
}

const turns = new WeakMap<Request, ConnectionTurn>();

/** Marks a request as a turn. */
export function setTurn(request: Request, turn: ConnectionTurn): void {
  turns.set(request, turn);
}

/** Returns the turn of a request; absent for ordinary requests. */
export function turnOf(request: Request): ConnectionTurn | undefined {
  return turns.get(request);
}

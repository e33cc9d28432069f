/** Graceful shutdown: the server first reports that it is not ready, then refuses new requests, then closes. */
import { GatewayError } from "../errors.ts";
import { createReferenceCount } from "../reference_count.ts";

/**
 * `shutting_down`: the server answers requests, but reports that it is not ready. `refusing`: it refuses new requests.
 */
export type DrainPhase = "serving" | "shutting_down" | "refusing";

/** Kinds of connections that outlive their requests: WebSockets, and streams for operators that never end. */
export type LastingConnection = "socket" | "stream";

/** Shutdown state that the listeners of a process share. */
export interface Drain {
  readonly phase: DrainPhase;
  /** Begins the phase `shutting_down`, and notifies the registered connections. */
  beginShutdown(): void;
  /** Begins the phase `refusing`. */
  refuse(): void;
  /**
   * Registers a request whose body is still arriving. The returned function ends the registration: the body is complete
   * or no longer needed.
   */
  arrive(): () => void;
  /**
   * Resolves when no body is arriving. Deno's server must not shut down before that: readers of bodies that are still
   * arriving would throw `BadResource`.
   */
  arrived(): Promise<void>;
  /**
   * Registers a connection that outlives its request; `shutDown` is called when the shutdown begins. The returned
   * function ends the registration.
   */
  connect(kind: LastingConnection, shutDown: () => void, keyId?: string): () => void;
  /** Counts the registered connections of a kind, or those of one API key. */
  connections(kind: LastingConnection, keyId?: string): number;
}

/** Time after which a client may retry, in milliseconds. Another process may listen on the address by then. */
const RETRY_MS = 2_000;

/** Creates the state of a process that is not shutting down. */
export function createDrain(): Drain {
  const bodies = createReferenceCount();
  const connections = new Map<() => void, { kind: LastingConnection; keyId: string | undefined }>();
  const drain: Drain & { phase: DrainPhase } = {
    phase: "serving",
    beginShutdown() {
      if (drain.phase === "serving") drain.phase = "shutting_down";
      for (const close of [...connections.keys()]) close();
    },
    refuse() {
      drain.phase = "refusing";
    },
    arrive: bodies.begin,
    arrived: bodies.whenDone,
    connect(kind, shutDown, keyId) {
      connections.set(shutDown, { kind, keyId });
      return () => void connections.delete(shutDown);
    },
    connections: (kind, keyId) =>
      connections.values()
        .filter((connection) => connection.kind === kind && (keyId === undefined || connection.keyId === keyId))
        .reduce((count) => count + 1, 0),
  };
  return drain;
}

/** Returns the error for a request that arrives after the shutdown has begun. */
export function shutdownError(): GatewayError {
  return new GatewayError("overloaded", "Cannot accept this request: the gateway is shutting down", {
    retryAfterMs: RETRY_MS,
  });
}

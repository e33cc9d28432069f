/** Graceful shutdown: the server first reports not ready, then refuses new requests, and closes when none arrive. */
import { GatewayError } from "../errors.ts";
import { createReferenceCount } from "../reference_count.ts";

/** `shutting_down`: it serves, but reports that it is not ready. `refusing`: it takes no new requests. */
export type DrainPhase = "serving" | "shutting_down" | "refusing";

/** Kinds of connections that outlive their requests: WebSockets, and streams for operators that never end. */
export type LastingConnection = "socket" | "stream";

/** Shutdown state that the listeners of a process share. */
export interface Drain {
  readonly phase: DrainPhase;
  beginShutdown(): void;
  refuse(): void;
  /**
   * Registers a request whose body is still arriving. The returned function ends the registration: the body is complete
   * or no longer needed.
   */
  arrive(): () => void;
  /**
   * Resolves when no body is arriving. Deno's server loses sight of bodies that are still arriving when it shuts down:
   * their readers throw `BadResource`. So it must not, before this.
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

/** When to try again: by then another process may listen here. */
const RETRY_MS = 2_000;

/** Starts with a server that serves. */
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
      connections.values().filter((one) => one.kind === kind && (keyId === undefined || one.keyId === keyId))
        .reduce((count) => count + 1, 0),
  };
  return drain;
}

/** Error for a request that arrives after the shutdown began. */
export function stopping(): GatewayError {
  return new GatewayError("overloaded", "Cannot accept this request: the gateway is shutting down", {
    retryAfterMs: RETRY_MS,
  });
}

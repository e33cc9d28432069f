/** All transports, and shared helpers of their tests. */
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import { createFetchTransport } from "../../lib/upstreams/fetch_transport.ts";
import type { Outgoing, TimeLimits, Transport, TransportOptions } from "../../lib/upstreams/transport.ts";

/** Every transport, by its name. */
export const TRANSPORTS: Readonly<Record<string, (options?: TransportOptions) => Transport>> = {
  fetch: createFetchTransport,
  http1: createHttp1Transport,
};

/** Time enough for everything. */
export const LIMITS: TimeLimits = { connectMs: 30_000, firstByteMs: 30_000, idleMs: 30_000, totalMs: 60_000 };

/** A request with a test's changes. */
export function request(
  url: string,
  changes: Partial<Omit<Outgoing, "limits">> & { limits?: Partial<TimeLimits> } = {},
): Outgoing {
  const { limits, ...others } = changes;
  return {
    url,
    headers: { "content-type": "application/json" },
    body: "{}",
    signal: new AbortController().signal,
    ...others,
    limits: { ...LIMITS, ...limits },
  };
}

/** The error of a rejected promise; `undefined` otherwise. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error;
  }
}

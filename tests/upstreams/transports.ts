/** The transports that there are, and what their tests share. */
import { createHttp1Transport } from "../../lib/upstreams/http1_transport.ts";
import {
  createFetchTransport,
  type Outgoing,
  type TimeLimits,
  type Transport,
  type TransportOptions,
} from "../../lib/upstreams/transport.ts";

/** Every way to an upstream, by its name. */
export const TRANSPORTS: Readonly<Record<string, (options?: TransportOptions) => Transport>> = {
  fetch: createFetchTransport,
  http1: createHttp1Transport,
};

/** Time enough for everything. */
export const LIMITS: TimeLimits = { connectMs: 5_000, firstByteMs: 5_000, idleMs: 5_000, totalMs: 10_000 };

/** A request, but for what a test wants otherwise. */
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

/** What a promise rejects with; `undefined` where it does not. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Longest wait for what comes at once but on a machine that is busy with other things, in milliseconds. */
const SOON_MS = 20_000;

/** Fails where a promise does not settle within 20 s. */
export async function soon<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Too late: ${what}`)), SOON_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until something is so. */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + SOON_MS;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`Too late: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

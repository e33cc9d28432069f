/** Selects the transport of an upstream: the gateway's HTTP/1.1 client, or `fetch` for proxies and HTTP/2. */
import { GatewayError } from "../errors.ts";
import { type AddressGuard, addressPolicy } from "./address_guard.ts";
import { createHttp1Client, HttpVersionError } from "../http1/mod.ts";
import type { CallSpan } from "../observe/trace.ts";
import type { ReadEnvironment } from "../secret.ts";
import { createFetchTransport } from "./fetch_transport.ts";
import type { Incoming, Outgoing, Transport, TransportOptions } from "./transport.ts";
import { proxyFor } from "./proxies.ts";

/** Transports by name. */
export const TRANSPORT_KINDS = ["http1", "fetch"] as const;

/** Name of a transport. */
export type TransportKind = (typeof TRANSPORT_KINDS)[number];

/** Opens transports to one upstream. If the host speaks only HTTP/2, all of them fall back to `fetch` together. */
export interface TransportSelector {
  open(options?: TransportOptions): Transport;
}

/** Options of a selector. */
export interface TransportSelectorOptions {
  url: string;
  configured: TransportKind | "auto";
  /** Environment for proxy variables. Default: the process's, which `fetch` obeys. */
  env?: ReadEnvironment;
  /** Starts the trace of a request. Not called for `fetch`, which Deno traces itself. */
  trace?: (url: string) => CallSpan | undefined;
  /** Checks resolved addresses. Default: refuses cloud metadata addresses. */
  guard?: AddressGuard;
  /** Called once, when the host turns out to speak only HTTP/2. */
  onFallback: (reason: string) => void;
}

/** Returns the transport that is tried first. */
export function transportKindFor(
  { url, configured, env = (name) => Deno.env.get(name) }: Pick<
    TransportSelectorOptions,
    "url" | "configured" | "env"
  >,
): TransportKind {
  if (configured !== "auto") return configured;
  return proxyFor(url, env) === undefined ? "http1" : "fetch";
}

/** Creates the selector of an upstream. With `auto`, hosts that speak only HTTP/2 are reached over `fetch`. */
export function createTransportSelector(options: TransportSelectorOptions): TransportSelector {
  const { url, configured, onFallback, guard, trace = () => undefined } = options;
  const kind = transportKindFor(options);
  let usesFetch = false;

  /** Returns a transport that uses HTTP/1.1 until the host refuses it, then `fetch`. */
  function openHttp1(options: TransportOptions): Transport {
    const client = createHttp1Transport({ ...options, guard });
    let fallback: Transport | undefined;

    async function send(outgoing: Outgoing): Promise<Incoming> {
      let request = outgoing;
      while (!usesFetch) {
        const traced = trace(request.url);
        let status: number | undefined;
        try {
          const headers = traced && { ...request.headers, ...traced.headers };
          const answer = await client.send(headers === undefined ? request : { ...request, headers });
          ({ status } = answer);
          if (configured === "http1" || status !== 426 || !namesHttp2(answer.header("upgrade"))) return answer;
          throw upgradeError(answer);
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
          // A host may close an idle connection at any time. The request is sent again on a new connection then.
          if (error.fault === "stale") request = { ...request, fresh: true };
          else if (configured === "http1" || !(error.cause instanceof HttpVersionError)) throw error;
          else {
            if (!usesFetch) onFallback(error.cause.message);
            usesFetch = true;
            // A stream that was read cannot be sent again. The host has not processed the request, so another target
            // may be tried.
            if (request.body instanceof ReadableStream) throw error;
          }
        } finally {
          traced?.end(status);
        }
      }
      // TLS negotiates the version (ALPN); without TLS it must be known in advance.
      const version = url.startsWith("https:") ? "any" : "2";
      fallback ??= createFetchTransport({ ...options, guard, version });
      return await fallback.send(outgoing);
    }

    return {
      send,
      close() {
        client.close();
        fallback?.close();
      },
    };
  }

  return {
    open: (options = {}) => kind === "fetch" ? createFetchTransport({ ...options, guard }) : openHttp1(options),
  };
}

/** Turns a 426 answer into an error. */
function upgradeError(answer: Incoming): GatewayError {
  answer.cancel();
  const cause = new HttpVersionError("It asks for an upgrade to HTTP/2");
  return new GatewayError("upstream", "Cannot reach the model's upstream", { cause, fault: "unreachable" });
}

/**
 * Returns whether the `upgrade` header of a 426 names HTTP/2 (RFC 9110, section 15.5.22), for which there is a
 * fallback.
 */
function namesHttp2(upgrade: string | null): boolean {
  return upgrade !== null && /(^|[\s,])(h2c?|HTTP\/2(\.0)?)($|[\s,])/i.test(upgrade);
}

/**
 * Creates a transport over HTTP/1.1, without proxies.
 * @param options `idleMs`: longest idle time of connections if the host announces no timeout, in milliseconds; absent:
 * the client's
 */
export function createHttp1Transport({ guard, ...options }: TransportOptions & { idleMs?: number } = {}): Transport {
  return createHttp1Client({ ...options, addresses: addressPolicy({ guard }) });
}

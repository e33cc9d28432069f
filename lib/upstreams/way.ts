/** The way to one upstream: the HTTP/1.1 client of our own, or `fetch` where only that can go there. */
import { GatewayError } from "../errors.ts";
import type { AddressGuard } from "./address_guard.ts";
import { HttpVersionError } from "../http1/mod.ts";
import { canServe, createHttp1Transport } from "./http1_transport.ts";
import type { Env } from "./proxies.ts";
import {
  createFetchTransport,
  type Incoming,
  type Outgoing,
  type Transport,
  type TransportOptions,
} from "./transport.ts";

/** What carries requests to an upstream. */
export const CLIENTS = ["http1", "fetch"] as const;

/** One of them. */
export type Client = (typeof CLIENTS)[number];

/** The way to one upstream. All of its transports change over together. */
export interface Way {
  open(options?: TransportOptions): Transport;
}

/** A request in a trace: what it says of that to the host, and its end, with a status where there is an answer. */
export interface Traced {
  headers: Readonly<Record<string, string>>;
  end(status?: number): void;
}

/** What a way is made of. */
export interface WayOptions {
  /** Address of the upstream. */
  url: string;
  /** What the configuration says. */
  wanted: Client | "auto";
  /** Absent: that of the process, which is what `fetch` obeys. */
  env?: Env;
  /** Begins the trace of a request that is not `fetch`'s, which has its own; absent, and `undefined`: none. */
  trace?: (url: string) => Traced | undefined;
  /** Judges what the host resolves to; absent: metadata addresses are refused. */
  guard?: AddressGuard;
  /** Told once, where the host turns out to speak HTTP/2 alone. */
  fellBack: (reason: string) => void;
}

/** What carries requests to an address at first. */
export function clientFor(
  { url, wanted, env = (name) => Deno.env.get(name) }: Pick<WayOptions, "url" | "wanted" | "env">,
): Client {
  return wanted === "auto" ? canServe(url, env) ? "http1" : "fetch" : wanted;
}

/** The way to one upstream. Where the configuration leaves the choice, a host of HTTP/2 alone is asked over `fetch`. */
export function createWay(options: WayOptions): Way {
  const { url, wanted, fellBack, guard, trace = () => undefined } = options;
  const client = clientFor(options);
  let fallen = false;

  function fall(reason: string): void {
    if (fallen) return;
    fallen = true;
    fellBack(reason);
  }

  function openHttp1(options: TransportOptions): Transport {
    const transport = createHttp1Transport({ ...options, guard });
    return {
      send(outgoing) {
        const traced = trace(outgoing.url);
        return traced === undefined ? transport.send(outgoing) : sendTraced(transport, { outgoing, traced });
      },
      close: () => transport.close(),
    };
  }

  /** Asks over HTTP/1.1 until the host says that it does not speak it. */
  function withFallback(options: TransportOptions): Transport {
    const first = openHttp1(options);
    let other: Transport | undefined;
    return {
      async send(outgoing) {
        if (!fallen) {
          let refusal: GatewayError;
          try {
            const answer = await first.send(outgoing);
            if (!wantsHttp2(answer)) return answer;
            refusal = upgradeError(answer);
          } catch (error) {
            if (!(error instanceof GatewayError && error.cause instanceof HttpVersionError)) throw error;
            refusal = error;
          }
          fall(messageOf(refusal.cause));
          // What was begun to be read cannot be sent again; nobody has begun to do it.
          if (outgoing.body instanceof ReadableStream) throw refusal;
        }
        other ??= createFetchTransport({ ...options, guard, version: versionOf(url) });
        return await other.send(outgoing);
      },
      close() {
        first.close();
        other?.close();
      },
    };
  }

  return {
    open(options = {}) {
      if (client === "fetch") return createFetchTransport({ ...options, guard });
      return wanted === "http1" ? openHttp1(options) : withFallback(options);
    },
  };
}

/** Over TLS the host chooses; without it, it must be known before. */
function versionOf(url: string): "any" | "2" {
  return url.startsWith("https:") ? "any" : "2";
}

/** A request with its trace. @throws as `Transport.send` */
async function sendTraced(
  transport: Transport,
  { outgoing, traced }: { outgoing: Outgoing; traced: Traced },
): Promise<Incoming> {
  try {
    const headers = { ...outgoing.headers, ...traced.headers };
    const incoming = await transport.send({ ...outgoing, headers });
    traced.end(incoming.status);
    return incoming;
  } catch (error) {
    traced.end();
    throw error;
  }
}

/** An answer that is none, since the host wants another version of HTTP. */
function upgradeError(answer: Incoming): GatewayError {
  answer.cancel();
  const cause = new HttpVersionError("It asks for an upgrade to HTTP/2");
  return new GatewayError("upstream", "Cannot reach the model's upstream", { cause, fault: "unreachable" });
}

/** A 426 names what it wants; other upgrades are not for us. */
function wantsHttp2(answer: Incoming): boolean {
  return answer.status === 426 && /(^|[\s,])(h2c?|HTTP\/2(\.0)?)($|[\s,])/i.test(answer.header("upgrade") ?? "");
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : "";
}

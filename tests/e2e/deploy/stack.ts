/** A gateway behind a proxy, in front of a scripted upstream; and clients that write TLS bytes themselves. */
import { issueKey } from "../../../lib/access/keys.ts";
import { parseConfig } from "../../../lib/config/parse.ts";
import { closeGateway, createGateway } from "../../../lib/gateway.ts";
import { createApp } from "../../../lib/server/app.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { routes } from "../../../routes/manifest.ts";
import { oneModel } from "../../support/gateway.ts";
import { AUTHORITY } from "./programs.ts";

/** A gateway whose received requests are recorded. */
export interface Watched extends AsyncDisposable {
  port: number;
  /** Good everywhere. */
  key: string;
  /** Valid only from the address `::1`, which the tests' clients use, but not their proxies. */
  outsideKey: string;
  /** `METHOD URL` of every request that its server took for one. */
  seen: string[];
}

/** Starts a gateway in front of an upstream. It trusts a proxy at 127.0.0.1, and sends a keep-alive every second. */
export async function startWatched(upstream: string, more: JsonObject = {}): Promise<Watched> {
  const file = { ...oneModel("chat", upstream), trusted_proxies: ["127.0.0.1"], keep_alive_seconds: 1, ...more };
  const config = parseConfig(file, (name) => name === "UPSTREAM_KEY" ? "upstream-key-0123456789" : undefined);
  const store = openMemoryStore();
  const [good, outside] = [{}, { ips: ["::1"] }].map((rules, at) =>
    issueKey({ name: `key-${at}`, group: "default", rules, now: 0 })
  );
  for (const issued of [good, outside]) if (issued !== undefined) await store.keys.add(issued.record);
  const gateway = createGateway({ config, store, now: Date.now, log: () => {} });
  const app = createApp({ routes, gateway: () => gateway });
  const stop = new AbortController();
  const seen: string[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {}, signal: stop.signal },
    (request, info) => {
      seen.push(`${request.method} ${request.url}`);
      return app(request, info);
    },
  );
  return {
    port: server.addr.port,
    key: good?.key ?? "",
    outsideKey: outside?.key ?? "",
    seen,
    async [Symbol.asyncDispose]() {
      await closeGateway(gateway);
      stop.abort();
      await server.finished;
      await store.close();
    },
  };
}

/** Opens a connection to a proxy with TLS, or to a gateway without. */
export async function connect(port: number, { tls }: { tls: boolean }): Promise<Deno.Conn> {
  if (!tls) return await Deno.connect({ hostname: "127.0.0.1", port });
  const plain = await Deno.connect({ hostname: "::1", port });
  return await Deno.startTls(plain, { hostname: "localhost", caCerts: [AUTHORITY], alpnProtocols: ["http/1.1"] });
}

/** Writes bytes, one per character. Stops without an error once the peer no longer reads. */
export async function send(connection: Deno.Conn, text: string): Promise<void> {
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  try {
    for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  } catch {
    // The peer has closed; its earlier output is read by the caller.
  }
}

/** Text received over a connection. */
export interface Heard {
  /** One character per byte. */
  text: string;
  /** True if the other side has closed. */
  closed: boolean;
}

/** Reads until the peer closes, is silent for this long, or has sent the expected text. */
export async function hear(
  connection: Deno.Conn,
  { silenceMs, until = () => false }: { silenceMs: number; until?: (text: string) => boolean },
): Promise<Heard> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  while (!until(text)) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<"silent">((resolve) => timer = setTimeout(() => resolve("silent"), silenceMs));
    const size = await Promise.race([connection.read(buffer).catch(() => null), silence]);
    clearTimeout(timer);
    if (size === "silent") return { text, closed: false };
    if (size === null) return { text, closed: true };
    text += Array.from(buffer.subarray(0, size), (byte) => String.fromCharCode(byte)).join("");
  }
  return { text, closed: false };
}

/** Closes, whether or not it is closed already. */
export function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It is.
  }
}

/** A client of HTTP/1.1 and HTTP/2 that trusts the proxies' certificate. */
export function createClient(): Deno.HttpClient {
  return Deno.createHttpClient({ caCerts: [AUTHORITY] });
}

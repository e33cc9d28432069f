/** Checks the connection to a host step by step: name resolution, TCP, TLS and certificate. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { faultOf, reasonOf } from "../causes.ts";
import { hostAddressOf } from "../host_address.ts";
import { DAY_MS } from "../store/days.ts";
import type { Notes } from "./finding.ts";
import { withTimeout } from "./round_trip.ts";

/** A certificate that is valid for fewer days than this is reported. */
const MIN_VALID_DAYS = 14;

/** Clock and timeout of the checks. */
export interface ConnectionCheckOptions {
  /** Unix time in milliseconds. */
  now: () => number;
  /** Longest duration of each step, in milliseconds. */
  timeoutMs: number;
}

/** Checks the connection and notes the results. Returns whether all steps succeeded. */
export async function checkConnection(notes: Notes, url: URL, options: ConnectionCheckOptions): Promise<boolean> {
  const { hostname, port } = hostAddressOf(url);
  if (!await resolveName(notes, hostname, options)) return false;
  const startedAt = performance.now();
  try {
    const connection = await Deno.connect({ hostname, port, signal: AbortSignal.timeout(options.timeoutMs) });
    connection.close();
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === "TimeoutError";
    notes.error(
      isTimeout
        ? `${hostname}:${port} does not accept a connection within ${options.timeoutMs / 1000} s`
        : `Cannot connect to ${hostname}:${port}: ${reasonOf(error)}`,
      "Check base_url and the firewalls on the way",
    );
    return false;
  }
  const took = `${Math.round(performance.now() - startedAt)} ms`;
  if (url.protocol === "http:") {
    notes.ok(`${hostname}:${port} can be reached (${took})`);
    return true;
  }
  return await checkTls(notes, { hostname, port, took, ...options });
}

async function resolveName(notes: Notes, hostname: string, { timeoutMs }: ConnectionCheckOptions): Promise<boolean> {
  if (isIP(hostname) !== 0) return true;
  try {
    await withTimeout(timeoutMs, lookup(hostname, { all: true }));
    return true;
  } catch (error) {
    notes.error(
      `The name ${hostname} cannot be resolved: ${reasonOf(error)}`,
      "Check base_url and the DNS servers of this machine",
    );
    return false;
  }
}

interface TlsTarget extends ConnectionCheckOptions {
  hostname: string;
  port: number;
  /** Time that the TCP connection took, as text. */
  took: string;
}

/** Checks TLS: the handshake, and its version and the certificate's expiry if the runtime provides them. */
async function checkTls(notes: Notes, { hostname, port, took, now, timeoutMs }: TlsTarget): Promise<boolean> {
  const where = `${hostname}:${port}`;
  try {
    const { version, validTo } = await shakeHands({ hostname, port, timeoutMs });
    noteCertificate(notes, { text: `${where} can be reached (${took})`, version, validTo, now });
    return true;
  } catch (error) {
    noteTlsFailure(notes, where, await distrustOf({ hostname, port }, error));
    return false;
  }
}

/** Returns the error of the runtime's TLS client, which says why it rejects a certificate; `error` if it accepts it. */
async function distrustOf(address: { hostname: string; port: number }, error: unknown): Promise<unknown> {
  if (faultOf(error) !== "certificate not trusted") return error;
  try {
    using connection = await Deno.connectTls(address);
    await connection.handshake();
    return error;
  } catch (own) {
    return own;
  }
}

/** Notes that a TLS connection failed. */
export function noteTlsFailure(notes: Notes, where: string, error: unknown): void {
  const advice = TLS_ADVICE[faultOf(error) ?? ""] ??
    "If you trust it, set DENO_CERT to the certificate of its authority, or DENO_TLS_CA_STORE to system";
  notes.error(`TLS with ${where} fails: ${reasonOf(error)}`, advice);
}

/** Advice on TLS faults that trusting another certificate authority would not correct. */
const TLS_ADVICE: Readonly<Record<string, string>> = {
  "no proper TLS": "The host does not speak TLS on this port: correct the port of base_url, or begin it with http://",
  "certificate of another host": "Correct the host of base_url, or notify its operator",
  "certificate expired or not yet valid": "Renew it, or notify its operator; check the clock of this machine",
};

/**
 * Notes the TLS version and the expiry of the certificate, as far as they are known.
 * @param facts `text`: beginning of the note; `validTo`: end of the certificate's validity
 */
export function noteCertificate(
  notes: Notes,
  { text, version = "TLS", validTo, now }: {
    text: string;
    version: string | undefined;
    validTo: string | undefined;
    now: () => number;
  },
): void {
  const end = validTo === undefined ? NaN : Date.parse(validTo);
  if (Number.isNaN(end)) return notes.ok(`${text}, with ${version}`);
  const days = Math.floor((end - now()) / DAY_MS);
  const note = `${text}, with ${version}, certificate until ${new Date(end).toISOString().slice(0, 10)}`;
  if (days >= MIN_VALID_DAYS) notes.ok(note);
  else notes.warn(`${note}: ${days} days`, "Renew it, or notify its operator");
}

function shakeHands(
  { hostname, port, timeoutMs }: { hostname: string; port: number; timeoutMs: number },
): Promise<{ version?: string; validTo?: string }> {
  return new Promise((resolve, reject) => {
    // The TLS extension for the server's name does not allow IP addresses (RFC 6066, section 3).
    const servername = isIP(hostname) === 0 ? { servername: hostname } : {};
    const socket = connect({ host: hostname, port, ...servername }, () => {
      // Older runtimes lack both functions.
      const version = socket.getProtocol?.() ?? undefined;
      const validTo = socket.getPeerCertificate?.()?.valid_to;
      socket.destroy();
      resolve({ ...(version !== undefined && { version }), ...(validTo !== undefined && { validTo }) });
    });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no handshake within ${timeoutMs / 1000} s`)));
    socket.on("error", reject);
  });
}

/** The way to a host, step by step: name, connection, TLS. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { faultOf } from "../causes.ts";
import { DAY_MS } from "../store/days.ts";
import { type Notes, reasonOf } from "./finding.ts";

/** Certificates that expire within this many days are reported. */
const SOON_DAYS = 14;

/** Clock and timeout of the checks. */
export interface ConnectionCheckOptions {
  /** Unix time in milliseconds. */
  now: () => number;
  timeoutMs: number;
}

/** Takes the steps; false where one failed, and the notes say which. */
export async function checkConnection(notes: Notes, url: URL, steps: ConnectionCheckOptions): Promise<boolean> {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (!await findName(notes, hostname, steps)) return false;
  const begun = performance.now();
  try {
    const connection = await Deno.connect({ hostname, port, signal: AbortSignal.timeout(steps.timeoutMs) });
    connection.close();
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    notes.error(
      late
        ? `${hostname}:${port} does not accept a connection within ${steps.timeoutMs / 1000} s`
        : `Cannot connect to ${hostname}:${port}: ${reasonOf(error)}`,
      "Check base_url and the firewalls on the way",
    );
    return false;
  }
  const took = `${Math.round(performance.now() - begun)} ms`;
  if (url.protocol === "http:") {
    notes.ok(`${hostname}:${port} can be reached (${took})`);
    return true;
  }
  return await checkTls(notes, { hostname, port, took, ...steps });
}

async function findName(notes: Notes, hostname: string, { timeoutMs }: ConnectionCheckOptions): Promise<boolean> {
  if (isIP(hostname) !== 0) return true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    });
    await Promise.race([lookup(hostname, { all: true }), late]);
    return true;
  } catch (error) {
    notes.error(
      `The name ${hostname} cannot be resolved: ${reasonOf(error)}`,
      "Check base_url and the DNS servers of this machine",
    );
    return false;
  } finally {
    clearTimeout(timer);
  }
}

interface Tls extends ConnectionCheckOptions {
  hostname: string;
  port: number;
  took: string;
}

/** Checks TLS: version and expiry of the certificate, where the runtime provides them. */
async function checkTls(notes: Notes, { hostname, port, took, now, timeoutMs }: Tls): Promise<boolean> {
  const where = `${hostname}:${port}`;
  try {
    const { version, validTo } = await shakeHands({ hostname, port, timeoutMs });
    noteCertificate(notes, { text: `${where} can be reached (${took})`, version, validTo, now });
    return true;
  } catch (error) {
    noteTlsFailure(notes, where, error);
    return false;
  }
}

/** Notes that a TLS connection failed. */
export function noteTlsFailure(notes: Notes, where: string, error: unknown): void {
  notes.error(
    `TLS with ${where} fails: ${reasonOf(error)}`,
    faultOf(error) === "no proper TLS"
      ? "It speaks no TLS there: correct the port of base_url, or begin it with http://"
      : "If you trust it, set DENO_CERT to the certificate of its authority, or DENO_TLS_CA_STORE to system",
  );
}

/** Notes TLS version and expiry of the certificate, as far as they are known. */
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
  const whole = `${text}, with ${version}, certificate until ${new Date(end).toISOString().slice(0, 10)}`;
  if (days >= SOON_DAYS) notes.ok(whole);
  else notes.warn(`${whole}: ${days} days`, "Renew it, or notify its operator");
}

function shakeHands(
  { hostname, port, timeoutMs }: { hostname: string; port: number; timeoutMs: number },
): Promise<{ version?: string; validTo?: string }> {
  return new Promise((resolve, reject) => {
    // An address is no name to ask for.
    const servername = isIP(hostname) === 0 ? { servername: hostname } : {};
    const socket = connect({ host: hostname, port, ...servername }, () => {
      // Older runtimes have neither.
      const version = socket.getProtocol?.() ?? undefined;
      const validTo = socket.getPeerCertificate?.()?.valid_to;
      socket.destroy();
      resolve({ ...(version !== undefined && { version }), ...(validTo !== undefined && { validTo }) });
    });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no handshake within ${timeoutMs / 1000} s`)));
    socket.on("error", reject);
  });
}

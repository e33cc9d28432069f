/** Checks the public address: streams must arrive unbuffered, and the gateway must see the client address. */
import { isWithin } from "../access/networks.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";

/** Pieces of the paced stream, and the pause between two of them in milliseconds. */
const PIECES = 6;
const PACE_MS = 400;
/** Pieces that come within this belong together, in milliseconds. */
const TOGETHER_MS = PACE_MS / 2;

/** An address of a network that is reserved for documentation. */
const FORGED = "192.0.2.77";

/** Options of the check of the public URL. */
export interface PublicUrlOptions {
  /** The public address, without a slash at the end. */
  url: string;
  /** Absent: only whether it is alive is asked. */
  key?: string;
  /** A model with the embedded echo behind it. */
  model: string;
  /** Silence to try, in milliseconds; absent: none. */
  longMs?: number;
  /** Networks of the proxies whose word the gateway takes. */
  trusted: readonly string[];
  timeoutMs: number;
}

/** Checks the gateway from outside. */
export async function checkPublicUrl(options: PublicUrlOptions): Promise<Finding[]> {
  const notes = createNotes(options.url);
  if (!await checkAlive(notes, options)) return notes.found;
  if (options.key === undefined) {
    notes.warn("Streams were not tested: there is no key", "Pass an API key of the gateway with --key");
    return notes.found;
  }
  const paced = await requestPacedStream(notes, options, { pauseMs: PACE_MS, pieces: PIECES });
  if (paced !== undefined) reportPacing(notes, paced);
  await checkClientAddress(notes, options);
  if (options.longMs !== undefined && paced !== undefined) await checkSilence(notes, options, options.longMs);
  return notes.found;
}

async function checkAlive(notes: Notes, { url, timeoutMs }: PublicUrlOptions): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { redirect: "manual", signal: AbortSignal.timeout(timeoutMs) });
    await response.body?.cancel();
    if (response.ok && /^req_/.test(response.headers.get("x-request-id") ?? "")) return true;
    notes.error(
      response.ok ? "Something other than a gateway answers there" : `/healthz answers ${response.status} there`,
      "Check the routes of the proxy in front",
    );
  } catch (error) {
    notes.error(`It cannot be reached: ${reasonOf(error)}`, "Check its name, its certificate and the proxy in front");
  }
  return false;
}

interface Pacing {
  pauseMs: number;
  pieces: number;
}

interface PacedStream {
  /** When pieces of text came, in milliseconds after the request. */
  times: number[];
  /** Longest time between any two bytes, in milliseconds. */
  silenceMs: number;
  /** True if the stream was complete. */
  isComplete: boolean;
  /** Time it took, in milliseconds. */
  tookMs: number;
}

/** Has the echo model answer slowly; `undefined` where it cannot, and the notes say why. */
async function requestPacedStream(
  notes: Notes,
  { url, key, model, timeoutMs }: PublicUrlOptions,
  { pauseMs, pieces }: Pacing,
): Promise<PacedStream | undefined> {
  const startedAt = performance.now();
  const times: number[] = [];
  let silenceMs = 0;
  let text = "";
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs + pauseMs * pieces),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        stream: true,
        max_tokens: pieces,
        messages: [{ role: "user", content: `pace:${pauseMs}ms\nThis is a look at what is in front` }],
      }),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      notes.warn(
        `Streams could not be tested: ${model} answers ${response.status}`,
        'Pass a key that may use it with --key, or a model with the target "echo" of "embedded" with --model',
      );
      return undefined;
    }
    let last = performance.now();
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true })) ?? []) {
      const now = performance.now();
      silenceMs = Math.max(silenceMs, now - last);
      last = now;
      text += piece;
      for (const _ of piece.matchAll(/"content":"[^"]/g)) times.push(now - startedAt);
    }
  } catch (error) {
    // The times say how far it got.
    if (times.length === 0) {
      notes.error(`The stream ended before any text: ${reasonOf(error)}`, "Check the timeouts of the proxy");
      return undefined;
    }
  }
  const tookMs = performance.now() - startedAt;
  return { times, silenceMs, isComplete: text.includes("[DONE]"), tookMs };
}

function reportPacing(notes: Notes, { times, isComplete, tookMs }: PacedStream): void {
  const groups = times.filter((time, index) => index === 0 || time - (times[index - 1] ?? 0) > TOGETHER_MS).length;
  // Another pace means that another model answered.
  if (tookMs < PACE_MS * (PIECES - 2)) {
    notes.warn(
      "Streams could not be tested: the model ignores the requested pace",
      'Pass a model with the target "echo" of "embedded" with --model',
    );
  } else if (!isComplete) {
    notes.error("The stream was cut off", "Check the log of the proxy in front");
  } else if (groups >= PIECES - 2) {
    notes.ok("Events arrive one by one");
  } else {
    notes.error(
      groups <= 1 ? "Events are buffered and arrive all at once" : "Events are buffered and arrive in bursts",
      "Disable buffering and compression of text/event-stream in the proxy (nginx: proxy_buffering off)",
    );
  }
}

/** A long silence, with nothing but keep-alives. */
async function checkSilence(notes: Notes, options: PublicUrlOptions, longMs: number): Promise<void> {
  const paced = await requestPacedStream(notes, options, { pauseMs: longMs, pieces: 2 });
  if (paced === undefined) return;
  const seconds = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (paced.isComplete && paced.times.length >= 2) {
    return notes.ok(
      `A stream survives ${seconds(longMs)} without text; the longest silence on the way was ${
        seconds(paced.silenceMs)
      }`,
    );
  }
  notes.error(
    `A stream was cut off after ${seconds(paced.tookMs)} without text`,
    "Raise the timeout of the proxy (nginx: proxy_read_timeout 600s), or lower keep_alive_seconds",
  );
}

/** Checks the client address that the gateway sees, with and without a forged header. */
async function checkClientAddress(notes: Notes, options: PublicUrlOptions): Promise<void> {
  const seen = await shownAddress(options, {});
  if (seen === undefined) return;
  const own = await ownAddress(options.url);
  if (own !== undefined && isWithin(own, options.trusted)) {
    return notes.warn(
      `The client's address could not be tested: this machine (${own}) is a trusted proxy`,
      "Run the command on another machine",
    );
  }
  const forged = await shownAddress(options, { "x-forwarded-for": FORGED });
  if (forged === FORGED) {
    return notes.error(
      "Clients can forge their address: the gateway trusts X-Forwarded-For from them",
      "Have the proxy append to or replace that header, and list only proxies in trusted_proxies",
    );
  }
  if (seen === own) return notes.ok(`The gateway sees the client's address (${seen})`);
  if (isPrivate(seen)) {
    return notes.warn(
      `The gateway sees this client as ${seen}, although it is ${own ?? "another one"}`,
      `If ${seen} is the proxy, add it to trusted_proxies, and have the proxy send X-Forwarded-For`,
    );
  }
  notes.ok(`The gateway sees this client as ${seen}, which may be its address on the internet`);
}

async function shownAddress(
  { url, key, timeoutMs }: PublicUrlOptions,
  more: Record<string, string>,
): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/v1/models`, {
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
      headers: { authorization: `Bearer ${key}`, "x-sluice-show": "client-address", ...more },
    });
    await response.body?.cancel();
    return response.headers.get("x-sluice-client-address") ?? undefined;
  } catch {
    // An earlier check reports that it is unreachable.
    return undefined;
  }
}

/** The address of this machine on the way there. */
async function ownAddress(url: string): Promise<string | undefined> {
  const { protocol, hostname, port } = new URL(url);
  try {
    const connection = await Deno.connect({
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
      signal: AbortSignal.timeout(5_000),
    });
    const { localAddr } = connection;
    connection.close();
    return localAddr.hostname;
  } catch {
    return undefined;
  }
}

function isPrivate(address: string): boolean {
  return /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|::1$|f[cd]|fe80)/i.test(address);
}

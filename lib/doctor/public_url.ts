/** Checks the gateway at its public URL: streams must arrive unbuffered, and the gateway must see client addresses. */
import { reasonOf } from "../causes.ts";
import { isWithin, PRIVATE_NETWORKS } from "../access/networks.ts";
import { hostAddressOf } from "../host_address.ts";
import { createNotes, type Finding, type Notes } from "./finding.ts";

/** Events with text in the test stream. */
const EVENTS = 6;
/** Pause between two events, in milliseconds. */
const PAUSE_MS = 400;
/** Events that arrive within this time of each other count as buffered together, in milliseconds. */
const SAME_BURST_MS = PAUSE_MS / 2;

/** Forged client address, from a network reserved for documentation. */
const FORGED_ADDRESS = "192.0.2.77";

/** Options of the check of the public URL. */
export interface PublicUrlOptions {
  /** Public URL of the gateway, without a slash at the end. */
  url: string;
  /** API key; absent: only `/healthz` is requested. */
  key?: string;
  /** Model whose target is the embedded `echo`. */
  model: string;
  /** Duration of a silence to test, in milliseconds; absent: none is tested. */
  longMs?: number;
  /** Networks of the trusted proxies. */
  trusted: readonly string[];
  /** Longest duration of each step, in milliseconds. */
  timeoutMs: number;
}

/** Runs the checks. */
export async function checkPublicUrl(options: PublicUrlOptions): Promise<Finding[]> {
  const notes = createNotes(options.url);
  if (!await checkAlive(notes, options)) return notes.found;
  if (options.key === undefined) {
    notes.warn("Streams were not tested: there is no key", "Pass an API key of the gateway with --key");
    return notes.found;
  }
  const paced = await requestPacedStream(notes, options, { pauseMs: PAUSE_MS, events: EVENTS });
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
      [502, 503, 504].includes(response.status)
        ? "Check that the gateway runs, and that the proxy in front sends requests to its address"
        : "Check the routes of the proxy in front",
    );
  } catch (error) {
    notes.error(`It cannot be reached: ${reasonOf(error)}`, "Check its name, its certificate and the proxy in front");
  }
  return false;
}

interface Pacing {
  /** Pause between two events, in milliseconds. */
  pauseMs: number;
  /** Number of events with text. */
  events: number;
}

interface PacedStream {
  /** Arrival of each event with text, in milliseconds after the request. */
  times: number[];
  /** Longest time without a byte, in milliseconds. */
  silenceMs: number;
  /** True if the stream was complete. */
  isComplete: boolean;
  tookMs: number;
}

/** Makes the echo model answer slowly. Returns `undefined` if that is impossible, and notes the reason. */
async function requestPacedStream(
  notes: Notes,
  { url, key, model, timeoutMs }: PublicUrlOptions,
  { pauseMs, events }: Pacing,
): Promise<PacedStream | undefined> {
  const startedAt = performance.now();
  const times: number[] = [];
  let silenceMs = 0;
  let text = "";
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs + pauseMs * events),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        stream: true,
        max_tokens: events,
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
    let lastAt = performance.now();
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true })) ?? []) {
      const now = performance.now();
      silenceMs = Math.max(silenceMs, now - lastAt);
      lastAt = now;
      text += chunk;
      for (const _ of chunk.matchAll(/"content":"[^"]/g)) times.push(now - startedAt);
    }
  } catch (error) {
    // If some events arrived, the caller reports where the stream broke off.
    if (times.length === 0) {
      notes.error(`The stream ended before any text: ${reasonOf(error)}`, "Check the timeouts of the proxy");
      return undefined;
    }
  }
  const tookMs = performance.now() - startedAt;
  return { times, silenceMs, isComplete: text.includes("[DONE]"), tookMs };
}

function reportPacing(notes: Notes, { times, isComplete, tookMs }: PacedStream): void {
  const bursts = times.filter((time, index) => index === 0 || time - (times[index - 1] ?? 0) > SAME_BURST_MS).length;
  // A faster stream means that a model other than echo answered.
  if (tookMs < PAUSE_MS * (EVENTS - 2)) {
    notes.warn(
      "Streams could not be tested: the model ignores the requested pace",
      'Pass a model with the target "echo" of "embedded" with --model',
    );
  } else if (!isComplete) {
    notes.error("The stream was cut off", "Check the log of the proxy in front");
  } else if (bursts >= EVENTS - 2) {
    notes.ok("Events arrive one by one");
  } else {
    notes.error(
      bursts <= 1 ? "Events are buffered and arrive all at once" : "Events are buffered and arrive in bursts",
      "Disable buffering and compression of text/event-stream in the proxy (nginx: proxy_buffering off)",
    );
  }
}

/** Checks that a stream survives a long silence, in which only keep-alives arrive. */
async function checkSilence(notes: Notes, options: PublicUrlOptions, longMs: number): Promise<void> {
  const paced = await requestPacedStream(notes, options, { pauseMs: longMs, events: 2 });
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
  const forged = await shownAddress(options, { "x-forwarded-for": FORGED_ADDRESS });
  if (forged === FORGED_ADDRESS) {
    return notes.error(
      "Clients can forge their address: the gateway trusts X-Forwarded-For from them",
      "Have the proxy append to or replace that header, and list only proxies in trusted_proxies",
    );
  }
  if (seen === own) return notes.ok(`The gateway sees the client's address (${seen})`);
  if (isWithin(seen, PRIVATE_NETWORKS)) {
    return notes.warn(
      `The gateway sees this client as ${seen}, although it is ${own ?? "another one"}`,
      `If ${seen} is the proxy, add it to trusted_proxies, and have the proxy send X-Forwarded-For`,
    );
  }
  notes.ok(`The gateway sees this client as ${seen}, which may be its address on the internet`);
}

/** Returns the client address that the gateway sees; `undefined` if it does not answer. */
async function shownAddress(
  { url, key, timeoutMs }: PublicUrlOptions,
  headers: Record<string, string>,
): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/v1/models`, {
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
      headers: { authorization: `Bearer ${key}`, "x-sluice-show": "client-address", ...headers },
    });
    await response.body?.cancel();
    return response.headers.get("x-sluice-client-address") ?? undefined;
  } catch {
    // An earlier check has reported that the gateway is unreachable.
    return undefined;
  }
}

/** Returns the address of this machine in a connection to a URL; `undefined` if there is no connection. */
async function ownAddress(url: string): Promise<string | undefined> {
  const { hostname, port } = hostAddressOf(new URL(url));
  try {
    const connection = await Deno.connect({ hostname, port, signal: AbortSignal.timeout(5_000) });
    const { localAddr } = connection;
    connection.close();
    return localAddr.hostname;
  } catch {
    return undefined;
  }
}

/** An upstream that is reached over the network, whatever protocol it speaks. */
import { fold, unfold } from "../canonical/fold.ts";
import type { Event, Machine, Reply } from "../canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { sseReader } from "../http/sse.ts";
import { isObject, type Json, type JsonObject, parseJson, writeJson } from "../json.ts";
import { spliceMembers } from "../json_splice.ts";
import type { Frame } from "../protocols/codec.ts";
import type { RelayMachine } from "../protocols/relay.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";
import type { Secret } from "../secret.ts";
import { type Mend, noMend } from "./mends/mend.ts";
import { RELAYS, UPSTREAM_CODECS } from "./protocols.ts";
import type { Incoming, TimeLimits, Transport } from "./transport.ts";
import { translatePrompt } from "./translation.ts";
import type { Answer, Call, EventFeed, FrameFeed, Step, Upstream } from "./upstream.ts";
import { addressOf, type Vendor } from "./vendors.ts";

/** Most bytes of a whole answer, and of an error's body. */
const ANSWER_BYTES = 64 * 1024 * 1024;
const ERROR_BYTES = 64 * 1024;

/** The version of the messages protocol that is spoken where the client did not choose one. */
const MESSAGES_VERSION = "2023-06-01";

/** What an upstream is made of. */
export interface HttpUpstreamOptions {
  /** Its name in the configuration. */
  name: string;
  vendor: Vendor;
  baseUrl: string;
  /** The protocols this one speaks, the preferred one first. */
  protocols: readonly [UpstreamProtocol, ...UpstreamProtocol[]];
  key: Secret | undefined;
  mend?: Mend;
  limits: TimeLimits;
  transport: Transport;
}

/** A request that is ready to be sent, and how its answer is read. */
interface Attempt {
  protocol: UpstreamProtocol;
  body: string;
  read(incoming: Incoming): Promise<Answer>;
}

/** Makes an upstream of a vendor. */
export function createHttpUpstream(options: HttpUpstreamOptions): Upstream {
  const { vendor, transport, mend = noMend } = options;
  const issuer = vendor.issuer ?? options.name;

  async function generate(call: Call): Promise<Answer> {
    const protocol = protocolFor(call);
    const attempt = canRelay(call, protocol, issuer) ? relayed(call, protocol) : translated(call, protocol);
    try {
      return await attemptOnce(call, attempt);
    } catch (error) {
      // Signatures that the vendor no longer accepts would make the conversation fail for ever.
      if (!isSignatureError(error) || !hasReasoning(call)) throw error;
      call.dropped.add("reasoning");
      return await attemptOnce(call, translated(withoutReasoning(call), protocol));
    }
  }

  async function attemptOnce(call: Call, attempt: Attempt): Promise<Answer> {
    const { prompt, target, signal } = call;
    const incoming = await transport.send({
      url: addressOf({
        vendor,
        baseUrl: options.baseUrl,
        protocol: attempt.protocol,
        model: target.model,
        stream: prompt.stream,
      }),
      headers: headersFor(call, attempt.protocol),
      body: attempt.body,
      signal,
      // A whole answer comes at once, when it is done.
      limits: prompt.stream ? options.limits : { ...options.limits, firstByteMs: options.limits.totalMs },
    });
    if (incoming.status !== 200) throw await readFailure(incoming, attempt.protocol);
    return await attempt.read(incoming);
  }

  function protocolFor({ prompt, target }: Call): UpstreamProtocol {
    if (target.protocol !== undefined) return target.protocol;
    return options.protocols.find((protocol) => protocol === prompt.protocol) ?? options.protocols[0];
  }

  function headersFor({ client, prompt }: Call, protocol: UpstreamProtocol): Record<string, string> {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      accept: prompt.stream ? "text/event-stream" : "application/json",
      ...(options.key !== undefined && vendor.auth(options.key.reveal())),
    };
    if (protocol !== "messages") return headers;
    const own = prompt.protocol === "messages";
    headers["anthropic-version"] = (own ? client.header("anthropic-version") : null) ?? MESSAGES_VERSION;
    const betas = own ? client.header("anthropic-beta") : null;
    if (betas !== null && /^[\x20-\x7e]{1,4096}$/.test(betas)) headers["anthropic-beta"] = betas;
    return headers;
  }

  /** The client's own body, edited where it must be. */
  function relayed(call: Call, protocol: UpstreamProtocol): Attempt {
    const { client, prompt, target } = call;
    const relay = relayOf(protocol);
    const { request } = client.echo;
    const body = spliceMembers(client.text, {
      // Only the gateway reads these.
      provider: undefined,
      models: undefined,
      ...mendEdits(request, call),
      ...relay.bodyEdits({ streamed: prompt.stream, text: client.text }),
      model: JSON.stringify(target.model),
    });
    const codec = UPSTREAM_CODECS[protocol];
    return {
      protocol,
      body,
      async read(incoming) {
        const reader = codec.reader({ issuer });
        if (prompt.stream) {
          return { type: "frames", feed: relayFeed(frameSource(incoming, mend), reader, relay.machine(client.echo)) };
        }
        const { text, body } = await readWhole(incoming);
        return { type: "text", text: relay.reply(text, client.echo), reply: codec.readReply(body, { issuer }) };
      },
    };
  }

  /** Top-level members that the vendor's dialect wants otherwise. */
  function mendEdits(request: JsonObject, { prompt }: Call): Record<string, string | undefined> {
    const mended = mend.body?.({ ...request }, prompt) ?? request;
    const names = new Set([...Object.keys(request), ...Object.keys(mended)]);
    const edits: Record<string, string | undefined> = {};
    for (const name of names) {
      const value = mended[name];
      if (value !== request[name]) edits[name] = value === undefined ? undefined : writeJson(value);
    }
    return edits;
  }

  /** The prompt, written in another protocol. */
  function translated(call: Call, protocol: UpstreamProtocol): Attempt {
    const { prompt, target, model: row, dropped } = call;
    const { body, restore } = translatePrompt(prompt, { protocol, model: target.model, row, issuer, mend, dropped });
    const codec = UPSTREAM_CODECS[protocol];
    return {
      protocol,
      body: writeJson(body),
      async read(incoming) {
        if (prompt.stream) {
          const feed = eventFeed(frameSource(incoming, mend), codec.reader({ issuer }), restore());
          return { type: "events", feed: await withInputEstimate(feed, call) };
        }
        const { body } = await readWhole(incoming);
        return { type: "events", feed: wholeFeed(restored(codec.readReply(body, { issuer }), restore())) };
      },
    };
  }

  return { checksContext: true, generate, close: () => transport.close() };
}

/** A prompt goes through as text only where every signature in it belongs to the vendor, and nothing was cut off it. */
function canRelay({ prompt, client }: Call, protocol: UpstreamProtocol, issuer: string): boolean {
  if (protocol !== prompt.protocol || prompt.messages !== client.echo.prompt.messages) return false;
  return prompt.messages.every(({ blocks }) =>
    blocks.every((block) => block.type !== "reasoning" || (block.signature?.issuer ?? issuer) === issuer)
  );
}

function relayOf(protocol: UpstreamProtocol): typeof RELAYS[keyof typeof RELAYS] {
  if (protocol === "gemini") throw new TypeError("Cannot relay a protocol that no client speaks");
  return RELAYS[protocol];
}

/** The answer's frames, as they arrive. */
type FrameSource = { read(): Promise<Frame[] | undefined>; cancel(): void };

function frameSource(incoming: Incoming, mend: Mend): FrameSource {
  const type = incoming.header("content-type") ?? "";
  if (!/^text\/event-stream\b/i.test(type)) {
    incoming.cancel();
    throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a stream of events");
  }
  const decoder = new TextDecoder();
  const sse = sseReader();
  let over = false;
  return {
    async read() {
      if (over) return undefined;
      const piece = await incoming.read();
      const frames = piece === undefined
        ? [...sse.push(decoder.decode()), ...sse.end()]
        : sse.push(decoder.decode(piece, { stream: true }));
      over = piece === undefined;
      return mend.frame === undefined ? frames : frames.flatMap((frame) => mend.frame?.(frame) ?? []);
    },
    cancel: () => incoming.cancel(),
  };
}

/** Frames through a reader and what `adapt` must undo, until the answer's end. */
function eventFeed(source: FrameSource, reader: Machine<Frame, Event>, restore: Machine<Event, Event>): EventFeed {
  let over = false;
  return {
    async read() {
      while (!over) {
        const frames = await source.read();
        const read = (frames ?? []).flatMap((frame) => reader.push(frame));
        if (frames === undefined) read.push(...reader.end());
        const events = read.flatMap((event) => restore.push(event));
        if (frames === undefined) events.push(...restore.end());
        if (frames === undefined || events.some(isLast)) {
          over = true;
          source.cancel();
        }
        if (events.length > 0) return events;
      }
      return undefined;
    },
    cancel() {
      over = true;
      source.cancel();
    },
  };
}

/** Frames that pass, and the events that they mean. What comes after the answer's end is not read. */
function relayFeed(source: FrameSource, reader: Machine<Frame, Event>, machine: RelayMachine): FrameFeed {
  let over = false;
  return {
    async read() {
      if (over) return undefined;
      const frames = await source.read();
      const step: Step = { frames: [], events: [] };
      for (const frame of frames ?? []) {
        const events = reader.push(frame);
        step.events.push(...events);
        const error = events.find((event) => event.type === "error");
        step.frames.push(...(error === undefined ? machine.push(frame) : machine.fail(error.error)));
        over = events.some(isLast);
        if (over) break;
      }
      if (frames === undefined && !over) {
        over = true;
        const events = reader.end();
        step.events.push(...events);
        const error = events.find((event) => event.type === "error");
        if (error !== undefined) step.frames.push(...machine.fail(error.error));
      }
      if (over) {
        source.cancel();
        if (step.events.some((event) => event.type === "finish")) step.frames.push(...machine.end());
      }
      return step;
    },
    fail: (error) => machine.fail(error),
    cancel() {
      over = true;
      source.cancel();
    },
  };
}

function isLast(event: Event): boolean {
  return event.type === "finish" || event.type === "error";
}

/** A whole answer, through what `adapt` must undo. */
function restored(reply: Reply, restore: Machine<Event, Event>): Reply {
  return fold([...unfold(reply).flatMap((event) => restore.push(event)), ...restore.end()]);
}

function wholeFeed(reply: Reply): EventFeed {
  let events: Event[] | undefined = unfold(reply);
  return {
    read() {
      const all = events;
      events = undefined;
      return Promise.resolve(all);
    },
    cancel: () => void (events = undefined),
  };
}

/** Clients of the messages protocol watch the size of their input from the first event on: it gets an estimate. */
async function withInputEstimate(feed: EventFeed, { prompt, countInput }: Call): Promise<EventFeed> {
  if (prompt.protocol !== "messages") return feed;
  const estimate = await countInput();
  return {
    async read() {
      const events = await feed.read();
      return events?.map((event) =>
        event.type === "start" && event.usage?.prompt === undefined
          ? { ...event, usage: { ...event.usage, prompt: estimate } }
          : event
      );
    },
    cancel: () => feed.cancel(),
  };
}

async function readWhole(incoming: Incoming): Promise<{ text: string; body: JsonObject }> {
  const text = await incoming.text(ANSWER_BYTES);
  const body = parse(text);
  if (!isObject(body)) {
    throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a JSON object");
  }
  return { text, body };
}

/** An answer other than 200, as the error it means. */
async function readFailure(incoming: Incoming, protocol: UpstreamProtocol): Promise<GatewayError> {
  const { status } = incoming;
  if (status < 400) {
    incoming.cancel();
    return new GatewayError("upstream", "Cannot use the upstream's answer: neither a result nor an error");
  }
  const text = await incoming.text(ERROR_BYTES).catch(() => "");
  const error = UPSTREAM_CODECS[protocol].readError(status, parse(text));
  const retryAfterMs = error.retryAfterMs ?? readRetryAfter(incoming);
  if (retryAfterMs === undefined || (error.kind !== "exhausted" && error.kind !== "overloaded")) return error;
  const { message, param, code, headers, final, cause } = error;
  return new GatewayError(error.kind, message, { param, code, headers, final, cause, retryAfterMs });
}

/** Seconds or milliseconds; a date is not worth the trust in two clocks. */
function readRetryAfter(incoming: Incoming): number | undefined {
  const ms = Number(incoming.header("retry-after-ms") ?? NaN);
  if (ms > 0 && ms <= 3_600_000) return ms;
  const seconds = Number(incoming.header("retry-after") ?? NaN);
  return seconds > 0 && seconds <= 3_600 ? seconds * 1000 : undefined;
}

function parse(text: string): Json | undefined {
  try {
    return parseJson(text, { depth: 256, nodes: 2_000_000, keys: 100_000 });
  } catch {
    return undefined;
  }
}

/** Anthropic's words for reasoning that it does not take back. */
function isSignatureError(error: unknown): boolean {
  return error instanceof GatewayError && error.kind === "invalid" &&
    /signature.*thinking|thinking.*(signature|cannot be modified)|Expected `?thinking/is.test(error.message);
}

function hasReasoning({ prompt }: Call): boolean {
  return prompt.messages.some(({ blocks }) => blocks.some((block) => block.type === "reasoning"));
}

function withoutReasoning(call: Call): Call {
  const messages = call.prompt.messages.map((message) => ({
    ...message,
    blocks: message.blocks.filter((block) => block.type !== "reasoning"),
  }));
  return { ...call, prompt: { ...call.prompt, messages } };
}

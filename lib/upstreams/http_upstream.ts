/** An upstream reached over the network, for all protocols. */
import type { Prompt, Protocol, Signature } from "../protocols/canonical/types.ts";
import type { Target } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import { documentSize, type JsonObject, writeJsonSliced, writeWithRawSpans } from "../json/mod.ts";
import { LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import type { Texts } from "../protocols/codec.ts";
import { relayedReply } from "../protocols/relay.ts";
import type { Origin, UpstreamProtocol } from "../protocols/upstream_codec.ts";
import { contentFilter } from "../redact.ts";
import type { Secret } from "../secret.ts";
import { PARAMETER_NAMES } from "../protocols/translate/adapt_target.ts";
import { readLongInputs, writeLongInputs } from "./long_inputs.ts";
import { readFailure, readWhole, type WholeAnswer } from "./answers.ts";
import { UsageEstimator } from "./estimates.ts";
import { relayFeed, RelayTranslator, restored, translatedFeed, wholeFeed } from "./answer_feeds.ts";
import { type Quirk, quirkFor } from "../protocols/quirks/quirk.ts";
import { cutAtLimit } from "./output_limit.ts";
import { RELAYS, UPSTREAM_CODECS } from "./protocols.ts";
import { relayBody } from "./relay_body.ts";
import { limitsFor } from "./limits_for_call.ts";
import type { Incoming, Outgoing, ResendableBody, TimeLimits, Transport } from "./transport.ts";
import { translatePrompt } from "./translation.ts";
import type { Answer, Call, EventFeed, Upstream } from "./upstream.ts";
import { addressOf, type Vendor } from "./vendors.ts";

/** The version of the messages protocol that is spoken where the client did not choose one. */
const MESSAGES_VERSION = "2023-06-01";

/** Options of an upstream. */
export interface HttpUpstreamOptions {
  /** Upstream name in the configuration. */
  name: string;
  vendor: Vendor;
  baseUrl: string;
  /** The protocols this one speaks, the preferred one first. */
  protocols: readonly [UpstreamProtocol, ...UpstreamProtocol[]];
  key: Secret | undefined;
  quirk: Quirk;
  /** Issuers of the signatures that the gateway's models make. */
  issuers: ReadonlySet<string>;
  limits: TimeLimits;
  transport: Transport;
}

/** A request that is ready to be sent, and how its answer is read. */
interface Attempt {
  protocol: UpstreamProtocol;
  body: ResendableBody;
  /** @throws {GatewayError} as `relayFeed` */
  stream(incoming: Incoming): Answer;
  /** @throws {GatewayError} as `UpstreamCodec.readReply` */
  whole(answer: WholeAnswer, texts?: Texts): Answer;
}

/** A translated request whose body is still a value. */
type Unwritten = Omit<Attempt, "body"> & { body: JsonObject };

/** Returns the issuer of the signatures in a model's answers. */
export function modelIssuer(
  model: string,
  { name, vendor, quirk }: Pick<HttpUpstreamOptions, "name" | "vendor" | "quirk">,
): string {
  return quirk.issuer?.(model) ?? vendor.issuer ?? name;
}

/** Makes an upstream of a vendor. */
export function createHttpUpstream(options: HttpUpstreamOptions): Upstream {
  const { vendor, transport, quirk } = options;
  const auth = options.key === undefined ? {} : vendor.auth(options.key.reveal());
  const filter = contentFilter(options.key);
  const addresses: Partial<Record<UpstreamProtocol, string>> = {};

  function generate(call: Call): Promise<Answer> {
    return hasReasoning(call) ? generateSigned(call) : attemptOnce(call);
  }

  async function generateSigned(call: Call): Promise<Answer> {
    try {
      return await attemptOnce(call);
    } catch (error) {
      // Signatures that the vendor no longer accepts would make the conversation fail for ever.
      if (!isSignatureError(error)) throw error;
      call.dropped.add(PARAMETER_NAMES[call.prompt.protocol].signed);
      return await attemptOnce(withoutReasoning(call));
    }
  }

  async function prepare(call: Call): Promise<Attempt> {
    if (documentSize(call.client.body) > LONG_TEXT_CHARS) await yieldToEventLoop();
    const protocol = spokenTo(call.prompt.protocol, call.target);
    if (canRelay(call, protocol)) return fitting(() => relayed(call, protocol));
    const prompt = await readLongInputs(call.prompt, protocol);
    const attempt = fitting(() => translated(call, { protocol, prompt }));
    return { ...attempt, body: await writeBody(attempt.body, call) };
  }

  async function attemptOnce(call: Call): Promise<Answer> {
    const attempt = await prepare(call);
    const { prompt, signal } = call;
    const limits = limitsFor(call, options.limits, "text");
    const outgoing: Outgoing = {
      url: addressFor(attempt.protocol, call),
      headers: headersFor(call, attempt.protocol),
      body: attempt.body,
      signal,
      // A whole answer arrives at once when it is complete.
      limits: prompt.stream ? limits : { ...limits, firstByteMs: limits.totalMs },
    };
    let incoming: Incoming;
    try {
      incoming = await transport.send(outgoing);
    } catch (error) {
      // That a kept connection has just ended says nothing of the upstream: the request goes out once more, on a new one.
      if (!(error instanceof GatewayError) || error.fault !== "stale") throw error;
      incoming = await transport.send({ ...outgoing, fresh: true });
    }
    if (incoming.status !== 200) throw await readFailure(incoming, UPSTREAM_CODECS[attempt.protocol]);
    try {
      if (prompt.stream) return attempt.stream(incoming);
      const answer = await readWhole(incoming, filter);
      const isLong = answer.text.length > LONG_TEXT_CHARS;
      return attempt.whole(answer, isLong ? await writeLongInputs(answer.value, attempt.protocol) : undefined);
    } catch (error) {
      incoming.cancel();
      throw error;
    }
  }

  /** Only Gemini's address is another one for each model. A text that is put together anew is also looked up slowly. */
  function addressFor(protocol: UpstreamProtocol, { prompt: { stream }, target: { model } }: Call): string {
    const place = { vendor, baseUrl: options.baseUrl, protocol, model, stream };
    return protocol === "gemini" ? addressOf(place) : addresses[protocol] ??= addressOf(place);
  }

  /** Issuer of the signatures in the model's answers. */
  function issuerOf(target: Target): string {
    return modelIssuer(target.model, options);
  }

  /**
   * A prompt goes through as text only where nothing was cut off it, its vendor takes a limit as low as its own, and no
   * signature in it was made by another of the gateway's models. One that no model here makes comes from the upstream
   * itself: it sells the models of others.
   */
  function canRelay(call: Call, protocol: UpstreamProtocol): boolean {
    const { prompt, client } = call;
    if (protocol !== prompt.protocol || prompt.messages !== client.echo.prompt.messages) return false;
    const { maxTokens = Infinity } = prompt;
    if (vendor.hasLeastTokens === true && maxTokens < leastTokens(prompt.protocol, call.target)) return false;
    const own = issuerOf(call.target);
    const isPassable = (signature: Signature) =>
      // Its own in an envelope of ours must be taken out first: the value does not stand in the text.
      signature.issuer === own ? client.body.text.includes(signature.value) : !options.issuers.has(signature.issuer);
    return prompt.messages.every(({ blocks }) =>
      blocks.every((block) => block.type !== "reasoning" || !block.signature || isPassable(block.signature))
    );
  }

  function spokenTo(client: Protocol, target: Target): UpstreamProtocol {
    return target.protocol ?? options.protocols.find((protocol) => protocol === client) ?? options.protocols[0];
  }

  function leastTokens(client: Protocol, target: Target): number {
    return UPSTREAM_CODECS[spokenTo(client, target)].dialect.leastTokens ?? 0;
  }

  function headersFor({ client, prompt }: Call, protocol: UpstreamProtocol): Record<string, string> {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      accept: prompt.stream ? "text/event-stream" : "application/json",
      ...auth,
    };
    if (protocol !== "messages") return headers;
    const own = prompt.protocol === "messages";
    headers["anthropic-version"] = (own ? client.header("anthropic-version") : null) ?? MESSAGES_VERSION;
    const betas = own ? client.header("anthropic-beta") : null;
    if (betas !== null && /^[\x20-\x7e]{1,4096}$/.test(betas)) headers["anthropic-beta"] = betas;
    return headers;
  }

  /** Where the answer to a call comes from. */
  function originOf({ target, prompt: { extras } }: Call): Origin {
    const issuer = issuerOf(target);
    return extras?.tier === undefined ? { issuer } : { issuer, tier: extras.tier };
  }

  /** Relays the client's body with edited members. */
  function relayed(call: Call, protocol: UpstreamProtocol): Attempt {
    const { client } = call;
    const relay = relayOf(protocol);
    const dialect = quirkFor(quirk, protocol);
    const body = relayBody(call, { relay, quirk: dialect });
    const codec = UPSTREAM_CODECS[protocol];
    const origin = originOf(call);
    return {
      protocol,
      body,
      stream(incoming) {
        const translator = new RelayTranslator(codec.reader(origin), relay.machine(client.echo));
        return { type: "frames", feed: relayFeed(incoming, { quirk: dialect, filter }, translator) };
      },
      whole(answer, texts) {
        const reply = codec.readReply(answer.value, { ...origin, ...(texts !== undefined && { texts }) });
        return { type: "text", text: relayedReply(answer, client.echo), reply };
      },
    };
  }

  /** Translates the prompt, whose long arguments are already parsed. */
  function translated(call: Call, { protocol, prompt }: { protocol: UpstreamProtocol; prompt: Prompt }): Unwritten {
    const { target, model: row, dropped } = call;
    const issuer = issuerOf(target);
    const dialect = quirkFor(quirk, protocol);
    const { body, restore, limit } = translatePrompt(prompt, {
      protocol,
      model: target.model,
      row,
      issuer,
      quirk: dialect,
      dropped,
    });
    const codec = UPSTREAM_CODECS[protocol];
    const origin = originOf(call);
    const answered = (feed: EventFeed): Answer => ({
      type: "events",
      feed: limit === undefined ? feed : cutAtLimit(feed, limit),
    });
    return {
      protocol,
      body,
      stream(incoming) {
        const machines = { reader: codec.reader(origin), restore: restore(), estimator: new UsageEstimator(call) };
        return answered(translatedFeed(incoming, { quirk: dialect, filter }, machines));
      },
      whole({ value }, texts) {
        const reply = codec.readReply(value, { ...origin, ...(texts !== undefined && { texts }) });
        return answered(wholeFeed(restored(reply, restore()), new UsageEstimator(call)));
      },
    };
  }

  return {
    checksContext: true,
    issuerOf,
    spokenTo,
    leastTokens,
    generate,
    close: () => transport.close(),
  };
}

/** What the client said at length is copied from its own body: that of a megabyte takes less than what takes a turn. */
async function writeBody(body: JsonObject, { client }: Call): Promise<ResendableBody> {
  const { utf8 } = client.body;
  const woven = utf8 && writeWithRawSpans(body, utf8);
  return woven === undefined ? await writeJsonSliced(body) : [woven];
}

/** A request that cannot be written for this upstream was not sent: another one may take it. */
function fitting<T>(write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw error instanceof GatewayError ? error.with({ fault: "unfit" }) : error;
  }
}

function relayOf(protocol: UpstreamProtocol): typeof RELAYS[keyof typeof RELAYS] {
  if (protocol === "gemini") throw new TypeError("Cannot relay a protocol that no client speaks");
  return RELAYS[protocol];
}

/** Anthropic's words for reasoning that it does not take back. */
function isSignatureError(error: unknown): boolean {
  return error instanceof GatewayError && error.kind === "invalid" && error.fault !== "unfit" &&
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

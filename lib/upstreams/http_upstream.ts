/** An upstream reached over the network, for all protocols. */
import { GatewayError } from "../errors.ts";
import type { HeaderFilter } from "../http1/mod.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import type { Protocol } from "../protocols/canonical/types.ts";
import { contentFilter } from "../redact.ts";
import { LONG_TEXT_CHARS } from "../scheduler.ts";
import type { Secret } from "../secret.ts";
import { forwardedHeaders, isJson, readFailure, readUnstreamed, readWhole, requestIdOf } from "./answers.ts";
import { writeLongInputs } from "./long_inputs.ts";
import { createAttemptMaker, limitsFor } from "./prepare_attempt.ts";
import { UPSTREAM_CODECS } from "./protocols.ts";
import type { Outgoing, TimeLimits, Transport } from "./transport.ts";
import type { Answer, Call, Upstream } from "./upstream.ts";
import { addressOf, type Vendor } from "./vendors.ts";

/** The version of the messages protocol for clients that did not choose one. */
const MESSAGES_VERSION = "2023-06-01";

/** Options of an upstream. */
export interface HttpUpstreamOptions {
  name: string;
  vendor: Vendor;
  baseUrl: string;
  /** The protocols this one speaks, the preferred one first. */
  protocols: readonly [Protocol, ...Protocol[]];
  key: Secret | undefined;
  quirk: Quirk;
  /** Issuers of the signatures that the gateway's models make. */
  issuers: ReadonlySet<string>;
  limits: TimeLimits;
  transport: Transport;
  /** Headers of answers that clients get; absent: none. The transport keeps them. */
  forwards?: HeaderFilter | undefined;
}

/** Makes an upstream of a vendor. */
export function createHttpUpstream(options: HttpUpstreamOptions): Upstream {
  const { vendor, transport } = options;
  const auth = options.key === undefined ? {} : vendor.auth(options.key.reveal());
  const filter = contentFilter(options.key);
  const { prepare, issuerOf, protocolFor, leastTokens } = createAttemptMaker(options, filter);
  const addresses: Partial<Record<Protocol, string>> = {};

  async function generate(call: Call): Promise<Answer> {
    try {
      return await attemptOnce(call);
    } catch (error) {
      // With signatures that the vendor no longer accepts, the conversation would always fail.
      if (!isSignatureError(error) || !hasReasoning(call)) throw error;
      call.dropped.add(PARAMETER_NAMES[call.prompt.protocol].signed);
      return await attemptOnce(withoutReasoning(call));
    }
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
    const incoming = await transport.send(outgoing);
    const forwarded = options.forwards && forwardedHeaders(incoming, options.forwards);
    if (incoming.status !== 200) {
      const error = await readFailure(incoming, UPSTREAM_CODECS[attempt.protocol]);
      throw forwarded === undefined ? error : error.withHeaders(Object.fromEntries(forwarded));
    }
    try {
      let answer: Answer;
      if (prompt.stream) {
        if (isJson(incoming)) throw await readUnstreamed(incoming, UPSTREAM_CODECS[attempt.protocol]);
        answer = attempt.stream(incoming);
      } else {
        const whole = await readWhole(incoming, filter);
        const isLong = whole.text.length > LONG_TEXT_CHARS;
        answer = attempt.whole(whole, isLong ? await writeLongInputs(whole.value, attempt.protocol) : undefined);
      }
      if (forwarded !== undefined) answer.forwarded = forwarded;
      answer.requestId = requestIdOf(incoming);
      return answer;
    } catch (error) {
      incoming.cancel();
      throw error;
    }
  }

  /** Only Gemini's address depends on the model. The others are cached: V8 looks up a newly built string slowly. */
  function addressFor(protocol: Protocol, { prompt: { stream }, target: { model } }: Call): string {
    const place = { vendor, baseUrl: options.baseUrl, protocol, model, stream };
    return protocol === "gemini" ? addressOf(place) : addresses[protocol] ??= addressOf(place);
  }

  function headersFor({ client, prompt }: Call, protocol: Protocol): Record<string, string> {
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

  return {
    checksContext: true,
    issuerOf,
    protocolFor,
    leastTokens,
    generate,
    close: () => transport.close(),
  };
}

/** Matches Anthropic's errors about reasoning that it does not accept back. */
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

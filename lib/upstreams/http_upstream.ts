/** An upstream for text that is reached over the network, in any protocol. */
import { GatewayError } from "../errors.ts";
import type { HeaderFilter } from "../http1/mod.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import type { Protocol } from "../protocols/canonical/types.ts";
import { contentFilter } from "../redact.ts";
import type { Secret } from "../secret.ts";
import { forwardedHeaders, isEventStream, readFailure, readUnstreamed, readWhole, requestIdOf } from "./answers.ts";
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
  /** The protocols that the upstream speaks, the preferred one first. */
  protocols: readonly [Protocol, ...Protocol[]];
  key: Secret | undefined;
  quirk: Quirk;
  /** Issuers of the signatures that the gateway's models make. */
  issuers: ReadonlySet<string>;
  limits: TimeLimits;
  transport: Transport;
  /** Selects headers of answers that clients get; absent: none. The transport must keep the same headers. */
  forwards?: HeaderFilter | undefined;
}

/** Creates an upstream. */
export function createHttpUpstream(options: HttpUpstreamOptions): Upstream {
  const { vendor, transport } = options;
  const auth = options.key === undefined ? {} : vendor.auth(options.key.reveal());
  const filter = contentFilter(options.key);
  const { prepare, ...routes } = createAttemptMaker(options, filter);
  const addresses: Partial<Record<Protocol, string>> = {};

  async function generate(call: Call): Promise<Answer> {
    try {
      return await attemptOnce(call);
    } catch (error) {
      // If the vendor no longer accepts old signatures, every further request of the conversation would fail.
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
      // The first byte of an answer that is not streamed arrives when the whole answer is complete.
      limits: prompt.stream ? limits : { ...limits, firstByteMs: limits.totalMs },
    };
    const incoming = await transport.send(outgoing);
    const codec = UPSTREAM_CODECS[attempt.protocol];
    const forwarded = options.forwards && forwardedHeaders(incoming, options.forwards);
    try {
      if (incoming.status !== 200) {
        const error = await readFailure(incoming, codec);
        throw forwarded === undefined ? error : error.withHeaders(Object.fromEntries(forwarded));
      }
      let answer: Answer;
      if (prompt.stream) {
        if (!isEventStream(incoming)) throw await readUnstreamed(incoming, codec);
        answer = attempt.stream(incoming);
      } else {
        answer = await attempt.readWhole(await readWhole(incoming, filter));
      }
      if (forwarded !== undefined) answer.forwarded = forwarded;
      answer.requestId = requestIdOf(incoming);
      return answer;
    } catch (error) {
      incoming.cancel();
      throw error instanceof GatewayError && attempt.inClientTerms !== undefined ? attempt.inClientTerms(error) : error;
    }
  }

  /**
   * Returns the URL. Only Gemini's depends on the model. The others are cached, because V8 looks up new strings slowly.
   */
  function addressFor(protocol: Protocol, { prompt: { stream }, target: { model } }: Call): string {
    const parts = { vendor, baseUrl: options.baseUrl, protocol, model, stream };
    return protocol === "gemini" ? addressOf(parts) : addresses[protocol] ??= addressOf(parts);
  }

  function headersFor({ client, prompt }: Call, protocol: Protocol): Record<string, string> {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      accept: prompt.stream ? "text/event-stream" : "application/json",
      ...auth,
    };
    if (protocol !== "messages") return headers;
    const isMessagesClient = prompt.protocol === "messages";
    headers["anthropic-version"] = (isMessagesClient ? client.header("anthropic-version") : null) ?? MESSAGES_VERSION;
    const betas = isMessagesClient ? client.header("anthropic-beta") : null;
    if (betas !== null && /^[\x20-\x7e]{1,4096}$/.test(betas)) headers["anthropic-beta"] = betas;
    return headers;
  }

  return {
    checksContext: true,
    ...routes,
    generate,
    close: () => transport.close(),
  };
}

/** Returns whether an error is one of Anthropic's about reasoning in the conversation that it does not accept. */
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

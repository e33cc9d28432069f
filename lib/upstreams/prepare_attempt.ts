/** Decides whether a call is relayed or translated, and makes the attempt. */
import type { Protocol, Signature } from "../protocols/canonical/types.ts";
import type { Target } from "../catalog/model.ts";
import { ownTimeouts, type Timed } from "../catalog/timeouts.ts";
import { GatewayError } from "../errors.ts";
import { documentSize } from "../json/mod.ts";
import type { Origin } from "../protocols/upstream_codec.ts";
import type { ContentFilter } from "../redact.ts";
import { LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import type { HttpUpstreamOptions } from "./http_upstream.ts";
import { readLongInputs } from "./long_inputs.ts";
import { UPSTREAM_CODECS } from "./protocols.ts";
import { relayAttempt } from "./relay_attempt.ts";
import { translationAttempt, writeBody } from "./translation_attempt.ts";
import type { TimeLimits } from "./transport.ts";
import type { Call, Upstream } from "./upstream.ts";
import type { UpstreamAttempt, UpstreamAttemptOptions } from "./upstream.ts";

/** Prepares the attempts of one upstream. */
export interface AttemptMaker extends Required<Pick<Upstream, "issuerOf" | "protocolFor" | "leastTokens">> {
  prepare(call: Call): Promise<UpstreamAttempt>;
}

/** Makes the attempts of an upstream. `filter` removes its key from answers. */
export function createAttemptMaker(
  options: Pick<HttpUpstreamOptions, "name" | "vendor" | "protocols" | "quirk" | "issuers">,
  filter: ContentFilter | undefined,
): AttemptMaker {
  const { vendor, quirk } = options;

  async function prepare(call: Call): Promise<UpstreamAttempt> {
    if (documentSize(call.client.body) > LONG_TEXT_CHARS) await yieldToEventLoop();
    const protocol = protocolFor(call.prompt.protocol, call.target);
    const attemptOptions: UpstreamAttemptOptions = { protocol, quirk, origin: originOf(call), filter };
    if (canRelay(call, protocol)) return fitting(() => relayAttempt(call, attemptOptions));
    const prompt = await readLongInputs(call.prompt, protocol);
    const attempt = fitting(() => translationAttempt(call, prompt, attemptOptions));
    return { ...attempt, body: await writeBody(attempt.body, call) };
  }

  /** Issuer of the signatures in the model's answers. */
  function issuerOf(target: Target): string {
    return modelIssuer(target.model, options);
  }

  /**
   * A prompt is relayed as text if it was not truncated, its token limit is high enough for the vendor, and none of its
   * signatures was made by another model of the gateway. Unknown signatures come from the upstream, which may resell models.
   */
  function canRelay(call: Call, protocol: Protocol): boolean {
    const { prompt, client } = call;
    if (protocol !== prompt.protocol || prompt !== client.echo.prompt) return false;
    const { maxTokens = Infinity } = prompt;
    if (vendor.hasLeastTokens === true && maxTokens < leastTokens(prompt.protocol, call.target)) return false;
    const own = issuerOf(call.target);
    if (prompt.plain !== undefined) {
      const { issuer = own } = prompt.plain.signatures ?? {};
      // None of them is in an envelope.
      return issuer === own || !options.issuers.has(issuer);
    }
    const isPassable = (signature: Signature) =>
      // Its own signature may be in an envelope of the gateway, which a relay could not remove.
      signature.issuer === own ? client.body.text.includes(signature.value) : !options.issuers.has(signature.issuer);
    return prompt.messages.every(({ blocks }) =>
      blocks.every((block) => block.type !== "reasoning" || !block.signature || isPassable(block.signature))
    );
  }

  function protocolFor(client: Protocol, target: Target): Protocol {
    return target.protocol ?? options.protocols.find((protocol) => protocol === client) ?? options.protocols[0];
  }

  function leastTokens(client: Protocol, target: Target): number {
    return UPSTREAM_CODECS[protocolFor(client, target)].dialect.leastTokens ?? 0;
  }

  function originOf({ target, prompt: { extras } }: Call): Origin {
    const issuer = issuerOf(target);
    return extras?.tier === undefined ? { issuer } : { issuer, tier: extras.tier };
  }

  return { prepare, issuerOf, protocolFor, leastTokens };
}

/** Marks errors as `unfit`: the request was not sent, so another upstream may accept it. */
export function fitting<T>(write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw error instanceof GatewayError ? error.with({ fault: "unfit" }) : error;
  }
}

/** Returns the issuer of the signatures in the answers of a model. `name`: the upstream's in the configuration. */
export function modelIssuer(
  model: string,
  { name, vendor, quirk }: Pick<HttpUpstreamOptions, "name" | "vendor" | "quirk">,
): string {
  return quirk.issuer?.(model) ?? vendor.issuer ?? name;
}

/** Returns the upstream's limits, overridden by those of the model and the target. */
export function limitsFor(
  call: { model: Timed; target: Timed },
  limits: TimeLimits,
  makes: "image" | "text",
): TimeLimits {
  if (call.model.timeouts === undefined && call.target.timeouts === undefined) return limits;
  const own = ownTimeouts(call);
  return {
    connectMs: own.connect_ms ?? limits.connectMs,
    firstByteMs: own.first_byte_ms ?? limits.firstByteMs,
    idleMs: own.idle_ms ?? limits.idleMs,
    totalMs: (makes === "image" ? own.images_total_ms : own.total_ms) ?? limits.totalMs,
  };
}

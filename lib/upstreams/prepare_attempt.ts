/** Decides whether a call is relayed or translated, and prepares the attempt. */
import type { ContentBlockOf, Protocol } from "../protocols/canonical/types.ts";
import type { Target } from "../catalog/model.ts";
import { ownTimeouts, type Timed } from "../catalog/timeouts.ts";
import { GatewayError } from "../errors.ts";
import { documentSize, isObject, type Json } from "../json/mod.ts";
import type { ContentFilter } from "../redact.ts";
import { LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import type { HttpUpstreamOptions } from "./http_upstream.ts";
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { UPSTREAM_CODECS } from "./protocols.ts";
import { relayAttempt } from "./relay_attempt.ts";
import type { TimeLimits } from "./transport.ts";
import type { Call, Upstream, UpstreamAttempt, UpstreamAttemptOptions } from "./upstream.ts";

/** The module for translations; absent before the first translation, so that a start does not load it. */
let translations: typeof import("./translation_attempt.ts") | undefined;

/** Prepares the attempts of one upstream. */
export interface AttemptMaker extends Required<Pick<Upstream, "issuerOf" | "protocolFor" | "minTokens">> {
  /** Prepares an attempt. @throws {GatewayError} with fault `unfit` if the upstream cannot take the request */
  prepare(call: Call): Promise<UpstreamAttempt>;
}

/** The facts that all requests of one client protocol to one target share. */
interface TargetRoute extends Pick<UpstreamAttemptOptions, "protocol" | "quirk" | "origin"> {
  /** Minimum number of tokens that an answer may be limited to. */
  minTokens: number;
}

/**
 * Creates the attempt maker of an upstream.
 * @param filter removes the upstream's key from answers; undefined: no key
 */
export function createAttemptMaker(
  options: Pick<HttpUpstreamOptions, "name" | "vendor" | "protocols" | "quirk" | "issuers">,
  filter: ContentFilter | undefined,
): AttemptMaker {
  const { vendor } = options;
  const routes = new WeakMap<Target, Map<Protocol, TargetRoute>>();

  async function prepare(call: Call): Promise<UpstreamAttempt> {
    if (documentSize(call.client.body) > LONG_TEXT_CHARS) await yieldToEventLoop();
    const route = routeTo(call.target, call.prompt.protocol);
    const { protocol, quirk, origin } = route;
    const tier = call.prompt.extras?.tier;
    const attemptOptions = { protocol, quirk, origin: tier === undefined ? origin : { ...origin, tier }, filter };
    try {
      if (canRelay(call, route)) return relayAttempt(call, attemptOptions);
      const { translationAttempt } = translations ??= await import("./translation_attempt.ts");
      return await translationAttempt(call, attemptOptions);
    } catch (error) {
      throw unfitError(error);
    }
  }

  /** Returns the issuer of the signatures in a target's answers. */
  function issuerOf(target: Target): string {
    return modelIssuer(target.model, options);
  }

  /**
   * Returns whether the client's text can be relayed: the prompt was not truncated, the vendor knows its members, its
   * token limit is high enough for the vendor, none of its signatures comes from another model of the gateway, and it
   * does not refer to reasoning that was not stored. Unknown signatures are assumed to come from the upstream, which may
   * resell models.
   */
  function canRelay(call: Call, { protocol, quirk, minTokens, origin: { issuer: own } }: TargetRoute): boolean {
    const { prompt, client } = call;
    if (protocol !== prompt.protocol || prompt !== client.responseContext.prompt) return false;
    if (prompt.openRouter === true && quirk.mayKnowOpenRouter !== true) return false;
    const { maxTokens = Infinity } = prompt;
    if (vendor.enforcesMinTokens === true && maxTokens < minTokens) return false;
    if (prompt.plain !== undefined) {
      const { issuer = own } = prompt.plain.signatures ?? {};
      // Signatures in plain messages are never in an envelope of the gateway.
      return issuer === own || !options.issuers.has(issuer);
    }
    const signatures = new Set<string>();
    const { store } = client.responseContext.request;
    for (const { blocks } of prompt.messages) {
      for (const block of blocks) {
        if (block.type !== "reasoning") continue;
        if (block.signature === undefined) {
          if (store === false && isReference(block)) return false;
          continue;
        }
        const { issuer, value } = block.signature;
        if (issuer === own) signatures.add(value);
        else if (options.issuers.has(issuer)) return false;
      }
    }
    // A signature of the target may be in an envelope of the gateway, which a relay could not remove.
    return hasTexts(client.responseContext.request, signatures);
  }

  /** Returns the route of a target and a client's protocol. It is created once. */
  function routeTo(target: Target, client: Protocol): TargetRoute {
    let byProtocol = routes.get(target);
    if (byProtocol === undefined) routes.set(target, byProtocol = new Map());
    let route = byProtocol.get(client);
    if (route === undefined) {
      const preferred = options.protocols.includes(client) ? client : options.protocols[0];
      const protocol = target.protocol ?? preferred;
      const { minTokens = 0 } = UPSTREAM_CODECS[protocol].dialect;
      const origin = { issuer: issuerOf(target) };
      byProtocol.set(client, route = { protocol, quirk: quirkFor(options.quirk, protocol), origin, minTokens });
    }
    return route;
  }

  return {
    prepare,
    issuerOf,
    protocolFor: (client, target) => routeTo(target, client).protocol,
    minTokens: (client, target) => routeTo(target, client).minTokens,
  };
}

/** Returns whether reasoning without a signature has an id and no content: a vendor looks it up by the id. */
function isReference({ unknownMembers }: ContentBlockOf<"reasoning">): boolean {
  const { id, content } = unknownMembers?.members ?? {};
  return typeof id === "string" && id !== "" && content === undefined;
}

/** Returns whether each text occurs as a string somewhere in a value. Removes the texts that it finds from the set. */
function hasTexts(value: Json, texts: Set<string>): boolean {
  if (texts.size === 0) return true;
  if (typeof value === "string") texts.delete(value);
  else if (Array.isArray(value)) { for (const item of value) if (hasTexts(item, texts)) return true; }
  else if (isObject(value)) { for (const name in value) if (hasTexts(value[name] ?? null, texts)) return true; }
  return texts.size === 0;
}

/** Marks an error as `unfit`: the request was not sent, so another upstream may accept it. */
export function unfitError(error: unknown): unknown {
  return error instanceof GatewayError ? error.with({ fault: "unfit" }) : error;
}

/** Returns the issuer of the signatures in a model's answers. `name` is the upstream's name in the configuration. */
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
  const timeouts = ownTimeouts(call);
  return {
    connectMs: timeouts.connect_ms ?? limits.connectMs,
    firstByteMs: timeouts.first_byte_ms ?? limits.firstByteMs,
    idleMs: timeouts.idle_ms ?? limits.idleMs,
    totalMs: (makes === "image" ? timeouts.images_total_ms : timeouts.total_ms) ?? limits.totalMs,
  };
}

/** Translates a prompt: adaptPrompt to the target's dialect, encode, apply vendor quirks. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Machine, Prompt, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";
import type { Dialect, UpstreamProtocol, WriteTarget } from "../protocols/upstream_codec.ts";
import { adaptPrompt } from "../protocols/translate/adapt_prompt.ts";
import { requireAllParameters } from "../protocols/translate/require_all_parameters.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import { UPSTREAM_CODECS } from "./protocols.ts";

/** Target of a translation. */
export interface Destination {
  protocol: UpstreamProtocol;
  /** Model id at the upstream. */
  model: string;
  row: Model;
  /** Issuer of the signatures that the target accepts. */
  issuer: string;
  quirk: Quirk;
  dropped: UnsupportedParameters;
}

/** A request body, and the state machines that reverse the adaptations in the answer. */
export interface Translation {
  body: JsonObject;
  /** Creates a machine for one answer. */
  restore: () => Machine<ReplyEvent, ReplyEvent>;
  /** As `Adapted.limit`. */
  limit?: number;
}

/**
 * Encodes a prompt for a target. Deterministic.
 * @throws {GatewayError} `invalid` if dropping something would change the meaning, or if the client requires all
 * parameters and one is dropped
 */
export function translatePrompt(
  prompt: Prompt,
  { protocol, model, row, issuer, quirk, dropped }: Destination,
): Translation {
  const codec = UPSTREAM_CODECS[protocol];
  const dialect: Dialect = {
    ...codec.dialect,
    ...quirk.dialect,
    ...row.features?.prefill !== undefined && { prefill: row.features.prefill },
  };
  const target: WriteTarget = { model, row, issuer, dialect, dropped };
  const adapted = adaptPrompt(oneAnswer(prompt, dropped), { ...target, protocol });
  const written = codec.writePrompt(adapted.prompt, target);
  const body = quirk.body?.(written, adapted.prompt, dropped) ?? written;
  requireAllParameters(prompt, dropped);
  const { limit } = adapted;
  return { body, restore: () => adapted.restore(), ...(limit !== undefined && { limit }) };
}

/** Refuses or drops parameters that the canonical form cannot carry. */
function oneAnswer(prompt: Prompt, dropped: UnsupportedParameters): Prompt {
  if ((prompt.n ?? 1) > 1) {
    throw new GatewayError("invalid", `Cannot return ${prompt.n} answers: this model returns one per request`, {
      param: "n",
    });
  }
  if (prompt.sampling.logprobs === undefined && prompt.sampling.topLogprobs === undefined) return prompt;
  const { logprobs, topLogprobs, ...sampling } = prompt.sampling;
  if (logprobs === true) dropped.add("logprobs");
  if ((topLogprobs ?? 0) > 0) dropped.add("top_logprobs");
  return { ...prompt, sampling };
}

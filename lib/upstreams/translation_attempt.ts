/**
 * Attempts that translate the prompt: they adapt it to the target's dialect, encode it, and apply the vendor's quirks.
 */
import type { GatewayError } from "../errors.ts";
import { inClientTerms } from "../protocols/canonical/client_parameter_names.ts";
import type { EventTransform, Prompt, Protocol } from "../protocols/canonical/types.ts";
import { runSlicedNow, runToEnd } from "../scheduler.ts";
import { type JsonObject, writeJsonSliced, writeWithRawSpans } from "../json/mod.ts";
import type { Dialect, WriteTarget } from "../protocols/upstream_codec.ts";
import { adaptPrompt } from "../protocols/translate/adapt_prompt.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import { UPSTREAM_CODECS } from "./protocols.ts";
import { restoredEvents, translatedFeed, wholeFeed } from "./answer_feeds.ts";
import type { Answer, Call, EventFeed, UpstreamAttempt, UpstreamAttemptOptions } from "./upstream.ts";
import { readLongInputs, readReply } from "./long_inputs.ts";
import { UsageEstimator } from "./estimates.ts";
import { cutAtLimit } from "./output_limit.ts";

/** Target of a translation. */
export interface Destination extends Omit<WriteTarget, "dialect"> {
  protocol: Protocol;
  quirk: Quirk;
}

/** A request body, and the transforms that reverse the adaptations in the answer. */
export interface Translation {
  body: JsonObject;
  /** Creates the transform that reverses the adaptations in the events of an answer. */
  restore: () => EventTransform;
  /** Output limit in tokens that the gateway must enforce, as in `AdaptedPrompt.limit`; absent if there is none. */
  limit?: number;
}

/**
 * Encodes a prompt for a target. Equal prompts and targets give equal bodies.
 * @throws {GatewayError} `invalid` if dropping something would change the meaning, or if the client requires all
 * parameters and one is dropped
 */
export function translatePrompt(prompt: Prompt, destination: Destination): Translation {
  return runToEnd(translateSteps(prompt, destination));
}

function* translateSteps(
  prompt: Prompt,
  { protocol, model, row, issuer, quirk, dropped }: Destination,
): Generator<void, Translation> {
  const codec = UPSTREAM_CODECS[protocol];
  const dialect: Dialect = {
    ...codec.dialect,
    ...quirk.dialect,
    ...row.features?.prefill !== undefined && { prefill: row.features.prefill },
  };
  const target: WriteTarget = { model, row, issuer, dialect, dropped };
  const adapted = yield* adaptPrompt(prompt, { ...target, protocol });
  yield;
  const wireBody = yield* codec.writePrompt(adapted.prompt, target);
  const body = quirk.body?.(wireBody, adapted.prompt, dropped, row) ?? wireBody;
  dropped.refuseIfRequired(prompt);
  const { limit, restore } = adapted;
  return { body, restore, ...(limit !== undefined && { limit }) };
}

/** Translates the prompt of a call in slices. @throws {GatewayError} as `translatePrompt` */
export async function translationAttempt(
  call: Call,
  { protocol, quirk, origin, filter }: UpstreamAttemptOptions,
): Promise<UpstreamAttempt> {
  const { target, model: row, dropped, client } = call;
  const prompt = await readLongInputs(call.prompt, protocol);
  const destination = { protocol, model: target.model, row, issuer: origin.issuer, quirk, dropped };
  const { body, restore, limit } = await runSlicedNow(translateSteps(prompt, destination));
  const codec = UPSTREAM_CODECS[protocol];
  const mapError = (error: GatewayError) => inClientTerms(error, protocol, client.responseContext);
  const answered = (feed: EventFeed): Answer => ({
    type: "events",
    feed: limit === undefined ? feed : cutAtLimit(feed, limit),
  });
  // Long texts are copied from the client's body, which is faster than encoding them again.
  const { utf8 } = client.body;
  const copied = utf8 && writeWithRawSpans(body, utf8);
  return {
    protocol,
    body: copied === undefined ? await writeJsonSliced(body) : [copied],
    inClientTerms: mapError,
    stream(incoming) {
      const machines = {
        reader: codec.reader(origin),
        restore: restore(),
        estimator: new UsageEstimator(call),
        inClientTerms: mapError,
      };
      return answered(translatedFeed(incoming, filter, machines));
    },
    async readWhole(answer) {
      const reply = await readReply(answer, codec, origin);
      return answered(wholeFeed(restoredEvents(reply, restore()), new UsageEstimator(call)));
    },
  };
}

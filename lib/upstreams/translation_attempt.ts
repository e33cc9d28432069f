/** Attempts whose body is translated from the canonical prompt. */
import type { Prompt } from "../protocols/canonical/types.ts";
import { type JsonObject, writeJsonSliced, writeWithRawSpans } from "../json/mod.ts";
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { restored, translatedFeed, wholeFeed } from "./answer_feeds.ts";
import type { UpstreamAttempt, UpstreamAttemptOptions } from "./attempt.ts";
import { UsageEstimator } from "./estimates.ts";
import { cutAtLimit } from "./output_limit.ts";
import { UPSTREAM_CODECS } from "./protocols.ts";
import type { ResendableBody } from "./transport.ts";
import { translatePrompt } from "./translation.ts";
import type { Answer, Call, EventFeed } from "./upstream.ts";

/** A translated request whose body is still a value. */
export type UnwrittenAttempt = Omit<UpstreamAttempt, "body"> & { body: JsonObject };

/** Translates the prompt, whose long arguments are already parsed. */
export function translationAttempt(
  call: Call,
  prompt: Prompt,
  { protocol, quirk, origin, filter }: UpstreamAttemptOptions,
): UnwrittenAttempt {
  const { target, model: row, dropped } = call;
  const dialect = quirkFor(quirk, protocol);
  const { body, restore, limit } = translatePrompt(prompt, {
    protocol,
    model: target.model,
    row,
    issuer: origin.issuer,
    quirk: dialect,
    dropped,
  });
  const codec = UPSTREAM_CODECS[protocol];
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

/** Writes a translated body. Long texts are copied from the client's body, which is faster than writing them anew. */
export async function writeBody(body: JsonObject, { client }: Call): Promise<ResendableBody> {
  const { utf8 } = client.body;
  const copied = utf8 && writeWithRawSpans(body, utf8);
  return copied === undefined ? await writeJsonSliced(body) : [copied];
}

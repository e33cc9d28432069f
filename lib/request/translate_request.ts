/** Translates a request body without sending it. */
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { JsonObject } from "../json/mod.ts";
import type { Codec } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import { type Destination, translatePrompt } from "../upstreams/translation_attempt.ts";
import { checkModelRules } from "./rules.ts";

/** The body for an upstream, and the names of the parameters that it leaves out. */
export interface TranslatedRequest {
  body: JsonObject;
  dropped: readonly string[];
}

/**
 * Translates a body of a client's protocol for an upstream.
 * @param destinationOf the upstream, for the model that the body names
 * @throws {GatewayError} where the body is not valid, or cannot be translated
 */
export function translateRequest(
  request: JsonObject,
  { codec, destinationOf }: { codec: Codec; destinationOf: (model: string) => Omit<Destination, "dropped"> },
): TranslatedRequest {
  checkBody(codec.schema, request);
  const original = codec.readPrompt(request);
  const destination = destinationOf(original.model);
  const dropped = new UnsupportedParameters({ prompt: original, request });
  const prompt = checkModelRules(original, destination.row, dropped);
  const { body } = translatePrompt(prompt, { ...destination, dropped });
  return { body, dropped: dropped.names };
}

/** Translates a request body without sending it. */
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { JsonObject } from "../json/mod.ts";
import type { Codec } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import { type Destination, translatePrompt } from "../upstreams/translation_attempt.ts";
import { checkModelRules } from "./rules.ts";

/**
 * Translates a body from the client's protocol for an upstream.
 * @param destinationOf returns the upstream for the model that the body names
 * @returns the body for the upstream, and the names of the parameters that were left out
 * @throws {GatewayError} if the body is invalid or cannot be translated
 */
export function translateRequest(
  request: JsonObject,
  { codec, destinationOf }: { codec: Codec; destinationOf: (model: string) => Omit<Destination, "dropped"> },
): { body: JsonObject; dropped: readonly string[] } {
  checkBody(codec.schema, request);
  const requested = codec.readPrompt(request);
  const destination = destinationOf(requested.model);
  const dropped = new UnsupportedParameters({ prompt: requested, request });
  const prompt = checkModelRules(requested, destination.row, dropped);
  const { body } = translatePrompt(prompt, { ...destination, dropped });
  return { body, dropped: dropped.names };
}

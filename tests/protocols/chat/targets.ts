/** Targets that the tests of the upstream's side share. */
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import { type Model, modelSchema } from "../../../lib/catalog/model.ts";
import type { Dialect, WriteTarget } from "../../../lib/protocols/upstream_codec.ts";
import { chatUpstream } from "../../../lib/protocols/chat/upstream.ts";
import { EVERY_PARAMETER } from "../canonical/every_parameter.ts";

/** Every parameter a row may list. */
export const ALL: readonly string[] = [...EVERY_PARAMETER, "prediction", "web_search_options"];

/** A row with the members given. */
export function rowOf(members: Record<string, unknown> = {}): Model {
  return modelSchema.parse({
    id: "acme/thinker",
    created: 1_790_000_000,
    context_length: 200_000,
    pricing: { prompt: "0.000001", completion: "0.000002" },
    supported_parameters: ALL,
    reasoning: { modes: ["manual", "adaptive"], efforts: ["none", "low", "medium", "high", "xhigh"] },
    targets: [{ upstream: "acme", model: "thinker-1" }],
    ...members,
  });
}

/** A target with the dialect and row given. */
export function targetOf(
  { dialect, row, issuer = "acme" }: { dialect?: Partial<Dialect>; row?: Record<string, unknown>; issuer?: string } =
    {},
): WriteTarget {
  return {
    model: "thinker-1",
    row: rowOf(row),
    issuer,
    dialect: { ...chatUpstream.dialect, ...dialect },
    dropped: new UnsupportedParameters(),
  };
}

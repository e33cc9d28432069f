/** A row of the catalog with nothing but what every row needs. */
import type { JsonObject } from "../../lib/json/mod.ts";

/** A row of the catalog: a free text model, `acme/one`, of the embedded upstream, except for the given members. */
export function plainModel(members: JsonObject = {}): JsonObject {
  return {
    id: "acme/one",
    created: 1,
    context_length: 10_000,
    pricing: { prompt: "0", completion: "0" },
    targets: [{ upstream: "embedded", model: "echo" }],
    ...members,
  };
}

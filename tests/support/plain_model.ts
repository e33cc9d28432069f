/** A row of the catalog and an upstream, with nothing but what every one needs. */
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

/** An OpenAI-compatible upstream without a key. A busy machine may take seconds to connect. */
export function plainUpstream(url: string): JsonObject {
  return { vendor: "openai-compatible", base_url: `${url}/v1`, timeouts: { connect_ms: 60_000 } };
}

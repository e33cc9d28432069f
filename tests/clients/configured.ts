/** A gateway for the tests that need a configuration: its start takes a second of CPU time. */
import { plainModel } from "../support/plain_model.ts";
import { type Gateway, sharedByFiles, startGateway } from "./gateway.ts";
import type { Body } from "./sse.ts";

/** Secrets of its keys by their group, the one without limits first. */
export const SECRETS = {
  free: "free-key-of-the-tests",
  narrow: "narrow-key-of-the-tests",
  poor: "poor-key-of-the-tests",
};

const EFFORTS = ["low", "medium", "high", "xhigh", "max"];

/** A model of this name with these modes of reasoning, answered by echo. */
function reasoning(id: string, modes: string[]): Body {
  return plainModel({ id, context_length: 200_000, reasoning: { modes, efforts: EFFORTS } });
}

const CONFIG = {
  upstreams: { embedded: { vendor: "embedded" } },
  images: { default_quality: "high" },
  groups: {
    free: {},
    narrow: { key_limits: { concurrency: 1 } },
    poor: { key_budget: { usd: "0.001", period: "month" } },
  },
  models: [
    reasoning("acme/claude-sonnet-4-5", ["manual"]),
    reasoning("acme/claude-opus-4-7", ["adaptive"]),
    plainModel({ id: "acme/fault", targets: [{ upstream: "embedded", model: "fault" }] }),
    plainModel({
      id: "acme/priced",
      context_length: 400_000,
      pricing: { prompt: "0.00001", completion: "0.00001" },
    }),
    plainModel({
      id: "acme/painter",
      architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
      pricing: { prompt: "0.00000075", completion: "0.0000045" },
      targets: [{ upstream: "embedded", model: "canvas" }],
    }),
  ],
};

/** The gateway for all tests of a module. */
export const sharedConfigured: () => () => Gateway = sharedByFiles(() =>
  startGateway({ config: CONFIG, keys: SECRETS })
);

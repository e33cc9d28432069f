/** A host of images on a port of its own, and a gateway that asks it. */
import type { JsonObject } from "../../../lib/json/mod.ts";
import { startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { type ImageGateway, PRICES, startPainted } from "./gateway.ts";
import { plainUpstream } from "../../support/plain_model.ts";

/** A host on its own port, and a gateway whose `acme/paint` is there. */
export function startBoth(
  answer: (request: UpstreamRequest) => Response | Promise<Response>,
  { row = {}, file = {} }: { row?: JsonObject; file?: JsonObject } = {},
): { received: UpstreamRequest[]; gateway: ImageGateway } & AsyncDisposable {
  const host = startUpstream(answer);
  const gateway = startPainted({}, {
    upstreams: { host: plainUpstream(host.url) },
    models: [{
      id: "acme/paint",
      created: 1_700_000_000,
      context_length: 32_000,
      architecture: { output_modalities: ["image"] },
      pricing: PRICES,
      targets: [{ upstream: "host", model: "paint-1" }],
      ...row,
    }],
    ...file,
  });
  return {
    received: host.requests,
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
    },
  };
}

/** A host of images on a port of its own, and a gateway that asks it. */
import type { Gateway } from "../../../lib/gateway.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { PRICES, type Running, startGateway } from "./gateway.ts";

/** What a host of images was asked. */
export interface Asked {
  path: string;
  authorization: string | null;
  body: JsonObject | FormData;
}

/** A host on a port of its own, and a gateway whose `acme/paint` is there. */
export function startBoth(
  answer: (asked: Asked) => Response | Promise<Response>,
  { row = {}, file = {}, log = () => {} }: { row?: JsonObject; file?: JsonObject; log?: Gateway["log"] } = {},
): { asked: Asked[]; gateway: Running } & AsyncDisposable {
  const asked: Asked[] = [];
  const host = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const isForm = request.headers.get("content-type")?.startsWith("multipart/") === true;
    const seen = {
      path: new URL(request.url).pathname,
      authorization: request.headers.get("authorization"),
      body: isForm ? await request.formData() : await request.json(),
    };
    asked.push(seen);
    return await answer(seen);
  });
  const gateway = startGateway({}, {
    upstreams: { host: { vendor: "openai-compatible", base_url: `http://127.0.0.1:${host.addr.port}/v1` } },
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
  }, { log });
  return {
    asked,
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await host.shutdown();
    },
  };
}

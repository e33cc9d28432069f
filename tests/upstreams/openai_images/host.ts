/** A real server in the role of an image host, and calls to it. */
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import { type Model, modelSchema, type Target } from "../../../lib/catalog/model.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type {
  ImageCall,
  ImageEvent,
  ImageFeed,
  ImageRequest,
  ImageUpstream,
  InputImage,
} from "../../../lib/images/types.ts";
import { Secret } from "../../../lib/secret.ts";
import { createOpenaiImages } from "../../../lib/upstreams/openai_images.ts";
import { createHttp1Transport } from "../../../lib/upstreams/select_transport.ts";
import { createFetchTransport } from "../../../lib/upstreams/fetch_transport.ts";
import type { TimeLimits } from "../../../lib/upstreams/transport.ts";
import { CUT, onError } from "../../upstream/mod.ts";
import { vendorOf } from "../../../lib/upstreams/vendors.ts";
import { imageRequest } from "../../images/request.ts";

/** Transports of image requests. */
const CARRIERS = { http1: createHttp1Transport, fetch: createFetchTransport };

let carrier: keyof typeof CARRIERS = "http1";

/** A test that runs over each transport. Other tests use the first one. */
export function overEach(claim: string, run: () => void | Promise<void>): void {
  for (const name of ["http1", "fetch"] as const) {
    Deno.test(`${claim} (${name})`, async () => {
      carrier = name;
      try {
        await run();
      } finally {
        carrier = "http1";
      }
    });
  }
}

/** True if the length of a form is sent in its head. */
export function tellsLength(): boolean {
  return carrier === "http1";
}

/** An image of 1x1 pixels. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** The head of a WebP image of 1x1 pixels. */
export const WEBP = btoa(`RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0${"\0".repeat(10)}`);

/** The PNG with other bytes after it, to distinguish images. */
export function png(tag: number): string {
  return btoa(atob(PNG) + String.fromCharCode(tag, tag, tag));
}

/** A host, and an upstream that calls it. */
export interface Host extends AsyncDisposable {
  create(request?: Partial<ImageRequest>, more?: { images?: Target["images"]; signal?: AbortSignal }): {
    call: ImageCall;
    feed: Promise<ImageFeed>;
  };
  /** Number of requests received. */
  count(): number;
}

/** Starts a host that answers each request with the result of `play`. */
export function startHost(
  play: (request: Request, index: number) => Response | Promise<Response>,
  limits: Partial<TimeLimits> = {},
): Host {
  let count = 0;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {}, onError },
    (request) => play(request, count++),
  );
  const upstream = upstreamAt(server.addr.port, limits);
  return {
    create(request = {}, more = {}) {
      const call = imageCall(request, more);
      return { call, feed: upstream.create(call) };
    },
    count: () => count,
    async [Symbol.asyncDispose]() {
      upstream.close();
      await server.shutdown();
    },
  };
}

/** An upstream that calls the host at this port. */
export function upstreamAt(port: number, limits: Partial<TimeLimits> = {}): ImageUpstream {
  return createOpenaiImages({
    name: "host",
    vendor: vendorOf("openai-compatible"),
    baseUrl: `http://127.0.0.1:${port}/v1`,
    key: new Secret("sk-host"),
    limits: { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000, ...limits },
    transport: CARRIERS[carrier]({ idleConnections: 0 }),
  });
}

/** A call with a small request in it. */
export function imageCall(
  request: Partial<ImageRequest>,
  { images, signal = new AbortController().signal }: { images?: Target["images"]; signal?: AbortSignal } = {},
): ImageCall {
  const model = painter(images);
  const [target] = model.targets;
  if (target === undefined) throw new Error("Expected a target");
  return {
    request: imageRequest({ model: model.id, ...request }),
    model,
    target,
    signal,
    dropped: new UnsupportedParameters(),
    identify: () => {},
  };
}

function painter(images: Target["images"]): Model {
  return modelSchema.parse({
    id: "acme/painter",
    created: 1,
    context_length: 32_000,
    architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
    pricing: { prompt: "0.00000075", completion: "0.0000045" },
    targets: [{ upstream: "host", model: "painter-2", images }],
  });
}

/** An uploaded image of these bytes. */
export function upload(bytes: Uint8Array<ArrayBuffer>, type: "png" | "jpeg" = "png"): InputImage {
  return { bytes, type, orientation: 1, width: 1024, height: 1024 };
}

/** All events of a feed. */
export async function readAll(feed: ImageFeed): Promise<ImageEvent[]> {
  const events: ImageEvent[] = [];
  for (let event = await feed.read(); event !== undefined; event = await feed.read()) events.push(event);
  return events;
}

/** A whole answer of these images. */
export function images(...base64: string[]): Response {
  return Response.json({ created: 1, data: base64.map((b64_json) => ({ b64_json })), usage: { total_tokens: 9 } });
}

/** A streamed answer. */
export function events(...list: object[]): Response {
  return eventText(list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
}

/** The same from text as sent over the wire. */
export function eventText(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}

/** The bytes, in pieces, then a broken connection. */
export function cut(text: string, headers: Record<string, string> = { "content-type": "application/json" }): Response {
  let sent = false;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (!sent) controller.enqueue(new TextEncoder().encode(text));
      else {
        // Written bytes must be sent before the connection breaks.
        await new Promise((resolve) => setTimeout(resolve, 50));
        controller.error(CUT);
      }
      sent = true;
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers });
}

/** The error that a promise fails with. */
export async function failure(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("Expected an error");
}

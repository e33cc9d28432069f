/** A gateway with image upstreams that follow a script. */
import { GatewayError } from "../../../lib/errors.ts";
import type { ImageCall, ImageEvent, ImageUpstream } from "../../../lib/images/types.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { type GatewayOptions, startGateway, type TestGateway } from "../../support/gateway.ts";
import { base64Of, png } from "../../images/image_files.ts";

/** A step of a painter: an event, an error that ends it, or a promise to wait for. */
export type Step = ImageEvent | GatewayError | Promise<unknown>;

/** The answer of an image model: the steps of its feed, or an error instead. */
export type Script = (call: ImageCall) => Iterable<Step> | GatewayError;

/** A painter and the calls it received. */
export interface Painter extends ImageUpstream {
  calls: ImageCall[];
  /** Number of feeds that were cancelled. */
  cancelled: number;
}

/** A painter that follows a script. Waits end when the call's signal does. */
export function painter(script: Script): Painter {
  const self: Painter = {
    calls: [],
    cancelled: 0,
    create(call) {
      self.calls.push(call);
      const steps = script(call);
      if (steps instanceof GatewayError) return Promise.reject(steps);
      const iterator = steps[Symbol.iterator]();
      let over = false;
      return Promise.resolve({
        async read() {
          while (!over) {
            const { done, value } = iterator.next();
            if (done === true) return undefined;
            if (value instanceof GatewayError) throw value;
            if (value instanceof Promise) await untilAborted(value, call.signal);
            else return value;
          }
          return undefined;
        },
        cancel() {
          if (!over) self.cancelled++;
          over = true;
        },
      });
    },
    close() {},
  };
  return self;
}

function untilAborted(wait: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    wait.then(resolve, reject);
  });
}

/** A gray image of a size, as base64. */
export function gray({ width, height }: { width: number; height: number }): string {
  return base64Of(png(width, height));
}

/** Paints every requested image, all gray. */
export const paintsAll: Script = ({ request }: ImageCall): Step[] =>
  Array.from({ length: request.n }, (_, index): Step => ({ type: "image", index, base64: gray(request.size) }));

/** A running gateway. */
export interface ImageGateway extends TestGateway {
  /** Sends a generation; members set to `undefined` are omitted. */
  generate(members?: JsonObject, init?: RequestInit): Promise<Response>;
  /** Sends an edit as a form. */
  edit(form: FormData, init?: RequestInit): Promise<Response>;
  /** Sends JSON anywhere. */
  post(path: string, body: Json, init?: RequestInit): Promise<Response>;
}

/** Service prices. */
export const PRICES = { prompt: "0.00000075", completion: "0.0000045" };

/** Starts a gateway with named painters; `acme/paint` tries them in turn. */
export function startPainted(
  painters: Record<string, Painter>,
  file: JsonObject = {},
  { row = {}, ...options }: { row?: JsonObject } & Pick<GatewayOptions, "arriving"> = {},
): ImageGateway {
  const names = Object.keys(painters);
  const gateway = startGateway({
    upstreams: Object.fromEntries(
      names.map((name) => [name, { vendor: "openai-compatible", base_url: "http://127.0.0.1:9" }]),
    ),
    models: [{
      id: "acme/paint",
      created: 1_700_000_000,
      context_length: 32_000,
      architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
      pricing: PRICES,
      targets: names.map((upstream, priority) => ({ upstream, model: "paint-1", priority })),
      ...row,
    }],
    ...file,
  }, { painters, now: () => 1_790_000_000_500, ...options });
  const authorization = `Bearer ${gateway.key.key}`;
  const post: ImageGateway["post"] = (path, body, init = {}) =>
    fetch(gateway.url + path, {
      method: "POST",
      ...init,
      headers: { authorization, "content-type": "application/json", ...init.headers },
      body: JSON.stringify(body),
    });
  return {
    ...gateway,
    post,
    generate: (members = {}, init = {}) =>
      post("/v1/images/generations", { model: "acme/paint", prompt: "A cat", quality: "low", ...members }, init),
    edit: (form, init = {}) =>
      fetch(`${gateway.url}/v1/images/edits`, {
        method: "POST",
        ...init,
        headers: { authorization, ...init.headers },
        body: form,
      }),
  };
}

/** A form with the fields of an edit and images. Fields that are `undefined` are omitted. */
export function formOf(
  fields: Record<string, string | undefined> = {},
  files: readonly (readonly [name: string, bytes: Uint8Array<ArrayBuffer>, filename?: string])[] = [],
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries({ model: "acme/paint", prompt: "Blue", quality: "low", ...fields })) {
    if (value !== undefined) form.append(name, value);
  }
  for (const [name, bytes, filename = "image.png"] of files) form.append(name, new File([bytes], filename));
  return form;
}

/** The error of an answer, with its status. */
export async function errorOf(response: Response): Promise<{ status: number; message: string; param: string | null }> {
  const { error } = await response.json();
  return { status: response.status, message: error.message, param: error.param };
}

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../lib/json.ts";
import { errorOf, formOf, gray, PRICES, type Running, startGateway } from "./gateway.ts";
import { png } from "./pictures.ts";

/** What a host of pictures was asked. */
interface Asked {
  path: string;
  authorization: string | null;
  body: JsonObject | FormData;
}

const PICTURE = gray({ width: 1024, height: 1024 });

/** A host on a port of its own, and a gateway whose `acme/paint` is there. */
function startBoth(answer: (asked: Asked) => Response): { asked: Asked[]; gateway: Running } & AsyncDisposable {
  const asked: Asked[] = [];
  const host = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const isForm = request.headers.get("content-type")?.startsWith("multipart/") === true;
    const seen = {
      path: new URL(request.url).pathname,
      authorization: request.headers.get("authorization"),
      body: isForm ? await request.formData() : await request.json(),
    };
    asked.push(seen);
    return answer(seen);
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
    }],
  });
  return {
    asked,
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await host.shutdown();
    },
  };
}

function result(pictures: number): Response {
  return Response.json({
    created: 1,
    data: Array.from({ length: pictures }, () => ({ b64_json: PICTURE })),
    usage: { input_tokens: 999, output_tokens: 999, total_tokens: 1998 },
  });
}

Deno.test("a generation is made by a host, and what the host reports is not billed", async () => {
  await using both = startBoth(() => result(2));
  const response = await both.gateway.generate({ n: 2, size: "1024x1024" });
  const { data, model, usage } = await response.json();
  assertEquals(data, [0, 1].map((index) => ({ b64_json: PICTURE, index })));
  assertEquals([model, usage.input_tokens, usage.output_tokens], ["acme/paint", 2, 14_048]);
  assertEquals(response.headers.get("x-sluice-cost"), "0.0632175");
  const [asked] = both.asked;
  assertEquals([asked?.path, asked?.authorization], ["/v1/images/generations", null]);
  const { model: target, prompt, n, size, quality } = asked?.body as JsonObject;
  assertEquals([target, prompt, n, size, quality], ["paint-1", "A cat", 2, "1024x1024", "low"]);
});

Deno.test("an edit reaches the host as a form with the same bytes, and the size that auto means", async () => {
  await using both = startBoth(() => result(1));
  const pictures = [png(1024, 1536), png(40, 30)];
  const files = pictures.map((bytes) => ["image", bytes] as const);
  const response = await both.gateway.edit(formOf({}, [...files, ["mask", png(1024, 1536)]]));
  const { num_input_images, usage, size } = await response.json();
  assertEquals([num_input_images, size], [2, "auto"]);
  // The host made a square, which has 7,024 tokens: no more than was asked for is charged.
  assertEquals(usage.output_tokens, 5_488);
  const form = both.asked[0]?.body;
  assert(form instanceof FormData);
  assertEquals([form.get("size"), form.get("model")], ["1024x1536", "paint-1"]);
  const sent = await Promise.all(
    form.getAll("image[]").map(async (file) => file instanceof File ? new Uint8Array(await file.arrayBuffer()) : file),
  );
  assertEquals(sent, pictures);
  assert(form.get("mask") instanceof File);
});

Deno.test("a host's refusal is a 400, its failure a 502 that nobody should repeat", async () => {
  const error = (code: string | null, status: number) =>
    Response.json({ error: { message: "Your request was rejected", type: "x", code, param: null } }, { status });
  await using both = startBoth(({ body }) =>
    (body as JsonObject).prompt === "Bad" ? error("moderation_blocked", 400) : error(null, 500)
  );
  const refused = await errorOf(await both.gateway.generate({ prompt: "Bad" }));
  assertEquals(refused.status, 400);
  assertMatch(refused.message, /rejected/);
  const failed = await both.gateway.generate({ prompt: "Good" });
  await failed.body?.cancel();
  assertEquals([failed.status, failed.headers.get("x-should-retry")], [502, "false"]);
  assertEquals(both.asked.length, 2);
});

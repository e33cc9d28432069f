import { assert, assertEquals, assertGreater, assertRejects, assertStringIncludes } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { createAdmissionQueue } from "../../lib/admission_queue.ts";
import {
  errorOf,
  formOf,
  gray,
  type Painter,
  painter,
  paintsAll,
  type Script,
  startPainted,
} from "../e2e/images/gateway.ts";
import { base64Of, join, png, pngHead } from "./image_files.ts";
import { until } from "../support/soon.ts";

/** An image model that works in this process and uses its memory. */
function localPainter(script: Script): Painter {
  return Object.assign(painter(script), { isLocal: true });
}

Deno.test("an admission queue admits by size: a small one overtakes a large one, and the largest runs alone", async () => {
  const { signal } = new AbortController();
  const gate = createAdmissionQueue({ concurrent: 10, waiting: 2, waitMs: 60_000 });
  const order: string[] = [];
  const enter = async (name: string, size: number) => {
    const leave = await gate.enter(signal, { size });
    order.push(name);
    return leave;
  };
  const first = await enter("first", 6);
  const large = enter("large", 50);
  const small = await enter("small", 4);
  const next = enter("next", 5);
  await assertRejects(() => gate.enter(signal, { size: 5 }), GatewayError, "Too many");
  first();
  const leaveNext = await next;
  assertEquals(order, ["first", "small", "next"]);
  small();
  leaveNext();
  (await large)();
  assertEquals(order, ["first", "small", "next", "large"]);
  (await gate.enter(signal, { size: 10 }))();
});

Deno.test("a request with too many pixels is a 400 with their number, read from file headers", async () => {
  const upstream = localPainter(paintsAll);
  await using gateway = startPainted({ p: upstream }, { resource_limits: { image_request_pixels: 20_000_000 } });
  const uploads = await gateway.edit(formOf({ size: "1024x1024" }, [
    ["image[]", pngHead(4000, 4000)],
    ["image[]", pngHead(2000, 2000)],
  ]));
  const { param, message } = await errorOf(uploads);
  assertEquals([uploads.status, param], [400, "image"]);
  assertStringIncludes(message, "Cannot process 21048576 pixels in one request: its uploads have 20000000");
  const many = await gateway.generate({ size: "2048x2048", n: 5 });
  assertEquals([many.status, (await errorOf(many)).param], [400, "n"]);
  assertEquals(upstream.calls, []);
  // A stream has one image in memory at a time.
  const stream = await gateway.generate({ size: "2048x2048", n: 5, stream: true });
  assertEquals(stream.status, 200);
  await stream.text();
});

Deno.test("images of another host do not count towards this process's pixels", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) }, {
    resource_limits: { image_request_pixels: 1_048_576 },
  });
  const response = await gateway.generate({ size: "1024x1024", n: 2 });
  assertEquals([response.status, (await response.json()).data.length], [200, 2]);
});

Deno.test("requests wait for pixels for a limited time, then get 503 with retry-after", async () => {
  const held = Promise.withResolvers<void>();
  let calls = 0;
  const base64 = gray({ width: 1024, height: 1024 });
  const upstream = localPainter(() => [
    ...(calls++ === 0 ? [held.promise] : []),
    { type: "image", index: 0, base64 },
  ]);
  await using gateway = startPainted({ p: upstream }, {
    resource_limits: { image_pixels: 1_500_000, image_wait_ms: 20 },
  });
  const first = gateway.generate({ size: "1024x1024" });
  await until("a call", () => calls > 0);
  const second = await gateway.generate({ size: "1024x1024" });
  const error = await errorOf(second);
  assertEquals(second.status, 503);
  assertGreater(Number(second.headers.get("retry-after")), 0);
  assertStringIncludes(error.message, "Too many images are being generated");
  held.resolve();
  assertEquals((await (await first).json()).data[0].b64_json, base64);
  // Both release their pixels, soon after their ends.
  for (const stream of [true, false]) {
    await until("free pixels", async () => {
      const response = await gateway.generate({ size: "1024x1024", stream });
      await response.text();
      return response.status === 200;
    });
  }
});

Deno.test("an unread answer keeps its pixels reserved until it is cut off", async () => {
  const image = base64Of(join(png(1024, 1024), new Uint8Array(48 * 1024 * 1024)));
  const upstream = localPainter(() => [{ type: "image", index: 0, base64: image }]);
  const resource_limits = { image_pixels: 1_048_576, image_wait_ms: 60_000, answer_unread_ms: 300 };
  await using gateway = startPainted({ p: upstream }, { resource_limits });
  const unread = await gateway.generate({ size: "1024x1024" });
  const next = await gateway.generate({ size: "1024x1024" });
  assertEquals([unread.status, next.status], [200, 200]);
  await next.body?.cancel();
  await assertRejects(() => unread.bytes());
  // The same for a request that is kept for repeats.
  const again = { headers: { "idempotency-key": "one" } };
  const kept = await gateway.generate({ size: "1024x1024" }, again);
  const after = await gateway.generate({ size: "1024x1024" });
  assertEquals([kept.status, after.status], [200, 200]);
  await after.body?.cancel();
  await assertRejects(() => kept.bytes());
  assert(upstream.calls.length === 4);
});

import { assert, assertEquals, assertMatch } from "@std/assert";
import { explainEntry } from "../../../lib/billing/reports/explain.ts";
import { lastFailure } from "../../../lib/request/attempts.ts";
import { entriesOf } from "../request/world.ts";
import { formOf, gray } from "./gateway.ts";
import { startBoth } from "./host.ts";
import { png } from "../../images/image_files.ts";

const IMAGE = gray({ width: 1024, height: 1024 });

function result(images: number): Response {
  return Response.json({
    created: 1,
    data: Array.from({ length: images }, () => ({ b64_json: IMAGE })),
    usage: { input_tokens: 999, output_tokens: 999, total_tokens: 1998 },
  });
}

Deno.test("a generation by a host is billed by the gateway's formula, not by the host's report", async () => {
  await using both = startBoth(() => result(2));
  const response = await both.gateway.generate({ n: 2, size: "1024x1024" });
  const { data, model, usage } = await response.json();
  assertEquals(data, [0, 1].map((index) => ({ b64_json: IMAGE, index })));
  assertEquals([model, usage.input_tokens, usage.output_tokens], ["acme/paint", 2, 14_048]);
  assertEquals(response.headers.get("x-sluice-cost"), "0.0632175");
  const [received] = both.received;
  assertEquals([received?.path, received?.headers.get("authorization")], ["/v1/images/generations", null]);
  const { model: target, prompt, n, size, quality } = received?.json ?? {};
  assertEquals([target, prompt, n, size, quality], ["paint-1", "A cat", 2, "1024x1024", "low"]);
});

Deno.test("an edit reaches the host as a form with the same bytes, and the size that auto means", async () => {
  await using both = startBoth(() => result(1));
  const images = [png(1024, 1536), png(40, 30)];
  const files = images.map((bytes) => ["image", bytes] as const);
  const response = await both.gateway.edit(formOf({}, [...files, ["mask", png(1024, 1536)]]));
  const { num_input_images, usage, size } = await response.json();
  assertEquals([num_input_images, size], [2, "auto"]);
  // The host made a square, which has more tokens than the size that was asked for.
  assertEquals(usage.output_tokens, 7_024);
  const form = await both.received[0]?.form();
  assert(form !== undefined);
  assertEquals([form.get("size"), form.get("model")], ["1024x1536", "paint-1"]);
  const sent = await Promise.all(
    form.getAll("image[]").map(async (file) => file instanceof File ? new Uint8Array(await file.arrayBuffer()) : file),
  );
  assertEquals(sent, images);
  assert(form.get("mask") instanceof File);
});

Deno.test("entries of generations and edits have the host's request id, streamed or not", async () => {
  let requests = 0;
  await using both = startBoth(() => {
    const response = result(1);
    response.headers.set("x-request-id", `host-${++requests}`);
    return response;
  });
  const { gateway } = both;
  await (await gateway.generate({})).body?.cancel();
  await (await gateway.edit(formOf({}, [["image", png(1024, 1024)]]))).body?.cancel();
  await (await gateway.generate({ stream: true })).text();
  await gateway.gateway.ledger.flush();
  const entries = await gateway.store.ledger.entries({ after: 0, limit: 10 });
  assertEquals(entries.map((entry) => explainEntry(entry).upstream_request_id), ["host-1", "host-2", "host-3"]);
});

Deno.test("an answer that cannot be read is an attempt in the ledger, a log line, and the target's last failure", async () => {
  await using both = startBoth(() => new Response("<html>", { headers: { "content-type": "application/json" } }));
  const { gateway } = both;
  const response = await gateway.generate();
  assertEquals(response.status, 502);
  await response.body?.cancel();
  const headers = ["upstream", "model", "attempts"].map((name) => response.headers.get(`x-sluice-${name}`));
  assertEquals(headers, ["host", "acme/paint", "1"]);
  const [entry] = await entriesOf(gateway.store.ledger, 1);
  const [attempt, ...others] = entry?.details?.attempts ?? [];
  assertEquals([attempt?.upstream, attempt?.outcome, others], ["host", "broken", []]);
  assertMatch(attempt?.message ?? "", /^Cannot read the upstream's answer/);
  const line = gateway.logs.find(({ event }) => event === "target_failed");
  assertEquals([line?.upstream, line?.reason], ["host", attempt?.message]);
  const target = gateway.gateway.catalog.find("acme/paint")?.targets[0];
  assertEquals(target && lastFailure(gateway.gateway.health, target)?.message, attempt?.message);
});

/** An image that takes ten minutes: its lease is kept all the while, through a reload; another is cut by the drain limit. */
import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { HAS_POSTGRES, HAS_REDIS } from "../support/databases.ts";
import { assertSound, type Node, readEntries, startCluster, until } from "../e2e/nodes/cluster.ts";
import { publish } from "./figures.ts";

/** Duration of the image, in milliseconds. */
const IMAGE_MS = Number(Deno.env.get("HEAVY_IMAGE_MS") ?? 600_000);
/** Seconds for which a node's holds outlive it: the image takes far longer. */
const LEASE_SECONDS = 5;
/** Seconds that an image in progress gets when the other node is told to end. */
const DRAIN_SECONDS = 10;
/** Time between two looks, in milliseconds. */
const LOOK_MS = Math.min(5_000, IMAGE_MS / 20);
/** One transparent point. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const ENV = { PATIENT_KEY: "key-of-one-who-waits", OTHER_KEY: "key-of-one-who-is-cut" };
/** 1e-12 USD that a token of an image costs before the reload, and afterwards. */
const PRICE = { before: "0.000004", units: 4_000_000n, after: "0.4" };

/** A host that paints until released. */
function slowHost() {
  const over = Promise.withResolvers<void>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { prompt } = await request.json();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const painted = new Promise((resolve) => timer = setTimeout(resolve, IMAGE_MS));
    await Promise.race(prompt === "for ever" ? [over.promise] : [painted, over.promise]);
    clearTimeout(timer);
    return Response.json({ created: 1, data: [{ b64_json: PNG }] });
  });
  return {
    port: server.addr.port,
    async [Symbol.asyncDispose]() {
      over.resolve();
      await server.shutdown();
    },
  };
}

function configFor(port: number, price: string): JsonObject {
  const rules = { limits: { concurrency: 1, requests_per_minute: 1_000 }, budget: { usd: "100", period: "total" } };
  return {
    admin: { key: { env: "ADMIN_KEY" } },
    upstreams: { host: { vendor: "openai-compatible", base_url: `http://127.0.0.1:${port}/v1` } },
    models: [{
      id: "acme/images",
      created: 0,
      context_length: 1_000,
      architecture: { output_modalities: ["image"] },
      pricing: { prompt: "0", completion: price },
      targets: [{ upstream: "host", model: "images" }],
    }],
    keys: [
      { name: "patient", key: { env: "PATIENT_KEY" }, ...rules },
      { name: "other", key: { env: "OTHER_KEY" }, ...rules },
    ],
    nodes: { lease_seconds: LEASE_SECONDS },
    shutdown: { drain_seconds: 1, images_drain_seconds: DRAIN_SECONDS },
  };
}

function ask(node: Node, { key, prompt }: { key: string; prompt: string }): Promise<Response> {
  return fetch(`${node.origin}/v1/images/generations`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "acme/images", prompt, size: "1024x1024", quality: "low" }),
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

Deno.test({
  name: "an image of ten minutes keeps its lease across a reload, and one cut by the drain limit is not charged",
  ignore: !HAS_POSTGRES || !HAS_REDIS,
  fn: async () => {
    await using host = slowHost();
    await using cluster = await startCluster({ config: configFor(host.port, PRICE.before), nodes: 2, env: ENV });
    const [one, two] = cluster.nodes;
    assert(one !== undefined && two !== undefined);
    const begun = performance.now();
    const holds = () => cluster.withLedger(async (ledger) => (await ledger.holds()).length);
    const answering = ask(one, { key: ENV.PATIENT_KEY, prompt: "slowly" });
    await until(() => holds().then((held) => held === 1), { within: 10_000, what: "the image has begun" });

    // From the other node, its slot is taken and its money held, long after the first lease.
    let looks = 0;
    let reloaded = 0;
    let cut: { status: number; text: string; afterMs: number; code: number } | undefined;
    for (let now = 0; now < IMAGE_MS - 2 * LOOK_MS; now = performance.now() - begun) {
      if (now < IMAGE_MS / 2 || reloaded === 0) {
        const refused = await ask(two, { key: ENV.PATIENT_KEY, prompt: "now" });
        assertEquals(refused.status, 429, await refused.text());
      }
      assertEquals(await holds(), 1, `after ${Math.round(now)} ms`);
      looks++;
      if (now > IMAGE_MS / 2 && reloaded === 0) {
        await Deno.writeTextFile(`${one.place.folder}/sluice.jsonc`, JSON.stringify(configFor(host.port, PRICE.after)));
        one.kill("SIGHUP");
        await until(() => priceAt(one).then((price) => price === PRICE.after), { within: 10_000, what: "the reload" });
        reloaded++;
        cut = await cutAtTheEnd(two, () => holds().then((held) => held === 2));
      }
      await pause(LOOK_MS);
    }
    const response = await answering;
    const ms = performance.now() - begun;
    const text = await response.text();
    assertEquals(response.status, 200, text);
    assertStringIncludes(text, PNG);
    assert(cut !== undefined);
    assertEquals([cut.status, cut.code], [503, 0], cut.text);
    assertStringIncludes(cut.text, "shutting down");
    assert(cut.afterMs >= DRAIN_SECONDS * 1_000 - 50);
    assertLess(cut.afterMs, DRAIN_SECONDS * 1_000 + 2_000);

    await until(() => holds().then((held) => held === 0), { within: 5_000, what: "money is held" });
    const entries = (await cluster.withLedger(readEntries)).filter(({ ending }) => ending !== "refused");
    assertEquals(entries.map(({ ending, status, images }) => [ending, status, images]), [
      ["failed", 503, 0],
      ["done", 200, 1],
    ]);
    const [failed, done] = entries;
    assert(failed !== undefined && done !== undefined);
    assertEquals(failed.cost, 0n);
    assertEquals(done.cost, BigInt(done.tokens.completion) * PRICE.units);
    await assertSound(cluster);
    await publish("long_images", {
      image_s: Math.round(ms / 1_000),
      lease_s: LEASE_SECONDS,
      looks,
      reloads: reloaded,
      drain_limit_s: DRAIN_SECONDS,
      cut_after_ms: Math.round(cut.afterMs),
    });
  },
});

/** One more image, at a node that is told to end as soon as it has begun. */
async function cutAtTheEnd(
  node: Node,
  hasBegun: () => Promise<boolean>,
): Promise<{ status: number; text: string; afterMs: number; code: number }> {
  const asked = ask(node, { key: ENV.OTHER_KEY, prompt: "for ever" });
  await until(hasBegun, { within: 10_000, what: "the other image has begun" });
  const told = performance.now();
  node.kill("SIGTERM");
  const response = await asked;
  const text = await response.text();
  const afterMs = performance.now() - told;
  return { status: response.status, text, afterMs, code: (await node.ended).code };
}

async function priceAt(node: Node): Promise<string | undefined> {
  const response = await fetch(`${node.origin}/v1/models`, {
    headers: { authorization: `Bearer ${ENV.OTHER_KEY}` },
  });
  const { data } = await response.json();
  return data.find(({ id }: { id: string }) => id === "acme/images")?.pricing?.completion;
}

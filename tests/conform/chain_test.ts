/** Runs the suite through gateways that translate to hosts of each protocol. */
import { assertEquals } from "@std/assert";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { TEXT_PARTS } from "../../lib/conform/check.ts";
import { runSuite } from "../../lib/conform/run.ts";
import { GEMINI_KEY, startGemini } from "../clients/gemini.ts";
import { model, startGateway, upstream } from "../support/gateway.ts";
import { skipInQuick } from "../support/skip.ts";
import { startKeyed } from "../support/keyed_gateway.ts";

const OPTIONS = { now: Date.now };

/**
 * A configuration with one model, `acme/one`, at a host that is a gateway too and supports everything that the suite
 * requests.
 */
function fileOf(host: JsonObject, target: JsonObject): Record<string, Json> {
  return {
    upstreams: { host },
    models: [model("acme/one", [{ upstream: "host", ...target }])],
    resource_limits: { json_body_bytes: 1_000_000 },
  };
}

/** Runs the suite through a gateway. Returns the failures and the ids of skipped claims. */
async function judge(origin: string, key: string): Promise<{ failed: string[]; skipped: string[] }> {
  const { results } = await runSuite({
    origin,
    key,
    model: "acme/one",
    only: ["models", ...TEXT_PARTS],
    concurrency: 8,
    timeoutMs: 20_000,
    largeBytes: 1_100_000,
  });
  return {
    failed: results.flatMap((result) =>
      result.outcome === "fail" ? [`${result.id}: expected ${result.expected}, saw ${result.seen}`] : []
    ),
    skipped: results.flatMap((result) => result.outcome === "skip" ? [result.id] : []),
  };
}

const HOSTS = [
  ["chat", "openai-compatible", "/v1"],
  ["responses", "openai", "/v1"],
  ["messages", "anthropic", "/anthropic"],
  ["gemini", "gemini", "/v1beta"],
] as const;

const ignore = skipInQuick("Conformance in front of a host of each protocol");

/** Skipped checks: Gemini's protocol signs calls and texts, not thoughts, and cannot switch parallel calls off. */
const WITH_GEMINI = ["responses.reasoning.whole", "messages.tools.single", "messages.thinking.whole"];

for (const [protocol, vendor, path] of HOSTS) {
  Deno.test(`a gateway in front of a host with the ${protocol} protocol passes`, { ignore }, async () => {
    await using host = startGateway({ keys: [{ name: "front", key: { env: "UPSTREAM_KEY" } }] }, OPTIONS);
    await using front = startGateway(
      fileOf(upstream(vendor, host.url, { base_url: host.url + path }), {
        model: "sluice/echo",
        protocol,
      }),
      OPTIONS,
    );
    assertEquals(await judge(front.url, front.key.key), {
      failed: [],
      skipped: protocol === "gemini" ? WITH_GEMINI : [],
    });
  });
}

Deno.test("a gateway in front of a host with the Gemini protocol passes", { ignore }, async () => {
  await using mind = startGateway({}, OPTIONS);
  await using host = startGemini({ ...mind, key: mind.key.key, stop: () => Promise.resolve() });
  await using front = startKeyed(
    fileOf({ vendor: "gemini", base_url: host.url, api_key: { env: "ADMIN_KEY" } }, { model: "echo" }),
    { adminKey: GEMINI_KEY },
  );
  assertEquals(await judge(front.url, front.keys.good), {
    failed: [],
    skipped: WITH_GEMINI,
  });
});

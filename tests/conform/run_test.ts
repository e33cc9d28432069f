import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { Mismatch, type SuitePart } from "../../lib/conform/check.ts";
import { CHECKS, runSuite, type SuiteRun } from "../../lib/conform/run.ts";
import { SuiteContext } from "../../lib/conform/suite_context.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type Recorded, startFaultyProxy } from "./faulty_proxy.ts";
import { FAULTS } from "./planted_faults.ts";
import { skipInQuick } from "../support/skip.ts";

function suite(
  origin: string,
  { key, only, largeBytes }: { key: string; only?: SuitePart; largeBytes?: number },
): Promise<SuiteRun> {
  return runSuite({
    origin,
    key,
    model: "sluice/echo",
    imageModel: "sluice/canvas",
    embeddingModel: "sluice/embed",
    rerankModel: "sluice/rerank",
    ...(only !== undefined && { only: [only] }),
    ...(largeBytes !== undefined && { largeBytes }),
    concurrency: only === undefined ? 8 : 1,
    timeoutMs: 60_000,
  });
}

/** The failed claims, with the received values. */
function failures({ results }: SuiteRun): string[] {
  return results.flatMap((result) =>
    result.outcome === "fail" ? [`${result.id}: expected ${result.expected}, saw ${result.seen}`] : []
  );
}

function embedded(resource_limits = {}): TestGateway {
  return startGateway({ resource_limits }, { now: Date.now });
}

Deno.test("the gateway with its embedded models passes every check without skips", async () => {
  // Sending 34 MiB takes a second.
  const isSmall = skipInQuick("A body over the default limit of the conformance suite");
  await using gateway = embedded(isSmall ? { json_body_bytes: 1_000_000 } : {});
  const run = await suite(gateway.url, { key: gateway.key.key, ...(isSmall && { largeBytes: 1_100_000 }) });
  assertEquals(failures(run), []);
  assertEquals(run.results.filter(({ outcome }) => outcome === "skip").map(({ id }) => id), []);
  assertEquals(run.results.length, CHECKS.length);
  for (const { id, part } of CHECKS) assert(id.startsWith(`${part}.`), id);
  assertEquals(new Set(CHECKS.map(({ id }) => id)).size, CHECKS.length);
});

Deno.test("a stream whose connection breaks before its first byte fails its check", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const context = new SuiteContext({
    origin: `http://127.0.0.1:${listener.addr.port}`,
    key: "k",
    model: "m",
    timeoutMs: 5_000,
  });
  const opening = context.open({ path: "/v1/chat/completions", body: {} });
  using connection = await listener.accept();
  await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"));
  const answer = await opening;
  connection.closeWrite();
  await assertRejects(() => answer.first(), Mismatch);
  answer.disconnect();
});

Deno.test("each planted fault is found by exactly the checks for it", async (t) => {
  assertGreater(FAULTS.length, 80);
  await using gateway = embedded({ json_body_bytes: 1_000_000 });
  const recorded: Recorded = new Map();
  const seen = new Set<string>();
  const few = skipInQuick("Most of the planted faults for each conformance check");
  for (const [index, { name, part, finds, make }] of FAULTS.entries()) {
    if (few && (index % 20 > 0 || finds.every((id) => seen.has(id)))) continue;
    for (const id of finds) seen.add(id);
    await t.step(name, async () => {
      await using proxy = startFaultyProxy(gateway.url, make(), recorded);
      const run = await suite(proxy.url, { key: gateway.key.key, only: part, largeBytes: 1_100_000 });
      const found = failures(run);
      const ids = [
        ...found.map((line) => line.split(":")[0] ?? ""),
        ...run.results.flatMap(({ id, outcome }) => outcome === "skip" ? [`${id} (skipped)`] : []),
      ];
      assertEquals(ids.sort(), [...finds].sort(), found.join("\n"));
    });
  }
});

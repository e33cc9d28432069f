import { assert, assertEquals } from "@std/assert";
import { judge, type Results } from "../../bench/suite/aims.ts";
import { BURST_EVENTS, streamParts, wholeAnswer } from "../../bench/suite/answers.ts";
import { bodyOf, type Protocol, type Size, SIZES } from "../../bench/suite/bodies.ts";
import { MessageReader, send } from "../../bench/suite/messages.ts";
import { seedEntries, seedKeys } from "../../bench/suite/seed.ts";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { openStore } from "../../lib/store/open.ts";
import { inFolder } from "../support/program.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const PROTOCOLS: readonly Protocol[] = ["chat", "responses", "messages"];
const test = (Deno.build.os !== "linux") ? Deno.test.ignore : Deno.test;

/** Runs a program of the benchmark. Returns its output, parsed as JSON. */
async function runBench(file: string, args: readonly string[]): Promise<Record<string, unknown>> {
  let report: Record<string, unknown> = {};
  await inFolder(async (folder) => {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--no-check",
        "--allow-all",
        `${ROOT}bench/${file}`,
        ...args,
        `--out=${folder}/out.json`,
      ],
      env: { NO_COLOR: "1", COMPILE_DENO: "" },
      stdout: "null",
      stderr: "piped",
      // On a busy machine it takes minutes.
      signal: AbortSignal.timeout(600_000),
    }).output();
    assertEquals(code, 0, new TextDecoder().decode(stderr));
    report = JSON.parse(await Deno.readTextFile(`${folder}/out.json`));
  });
  return report;
}

test("the benchmark measures the gateway against the minimal proxy and writes its results", async () => {
  const report = await runBench("suite.ts", [
    ...[
      "--cold",
      "--only=json 1k,burst cross",
      "--targets=sluice",
      "--rounds=1",
      "--ms=100",
      "--streams=0",
    ],
  ]);
  const { scenarios, starts, aims, targets } = report as unknown as Results & {
    aims: { aim: string; isMet: boolean | null }[];
    targets: { name: string; about: string }[];
  };
  assertEquals(targets.map(({ name }) => name), ["direct", "X", "sluice"]);
  assertEquals(Object.keys(scenarios), ["json 1k", "burst cross"]);
  for (const [name, measured] of Object.entries(scenarios)) {
    for (const { name: target } of targets) {
      const figures = measured[target];
      assert(figures !== undefined && !("failed" in figures), `${name}, ${target}: ${JSON.stringify(figures)}`);
      for (const value of [figures.cpuUs, figures.p50Us, figures.firstP50Us, figures.requestsPerSecond]) {
        assert(value > 0, `${name}, ${target}: ${JSON.stringify(figures)}`);
      }
    }
  }
  assertEquals(Object.keys(starts), ["X", "sluice"]);
  assertEquals(aims.find(({ aim }) => aim === "KB per slow translated stream")?.isMet, null);
  assert(typeof aims.find(({ aim }) => aim === "1 KB relayed, CPU / X")?.isMet === "boolean");
});

test("the stall probe measures how long the event loop was blocked, and the request latencies", async () => {
  const report = await runBench("stalls.ts", ["--rows=50", "--keys=5", "--times=1", "--only=50 rows"]);
  const { results } = report as { results: { name: string; answer: string; firstMs: number }[] };
  assert(results.length >= 5);
  for (const { name, answer, firstMs } of results) {
    assertEquals(answer, "200", name);
    assert(firstMs >= 0, name);
  }
});

Deno.test("bodyOf() and wholeAnswer() have the sizes in their names", () => {
  for (const protocol of PROTOCOLS) {
    for (const [size, { bytes }] of Object.entries(SIZES)) {
      const body = bodyOf({ protocol, size: size as Size, model: "chat/json", stream: false });
      const found = new TextEncoder().encode(body).length;
      assert(Math.abs(found / bytes - 1) < 0.1, `${protocol} ${size}: ${found}`);
    }
    const { length } = wholeAnswer(protocol, 60_000);
    assert(Math.abs(length - 60_000) < 2_000, `${protocol}: ${length}`);
  }
});

Deno.test("MessageReader reads fixed-length and streamed responses, split anywhere", async () => {
  const { opening, event, closing } = streamParts("chat");
  const texts = [wholeAnswer("chat", 500), opening + event.repeat(BURST_EVENTS) + closing];
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  for (const text of texts) {
    const bytes = new TextEncoder().encode(text);
    // The end of a stream has five bytes, and a cut within it must not hide it.
    for (const cut of [1, 100, bytes.length - 4, bytes.length - 1]) {
      using client = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
      using server = await listener.accept();
      server.setNoDelay(true);
      const reading = new MessageReader(client).next({ keep: true });
      await send(server, bytes.subarray(0, cut));
      await new Promise((resolve) => setTimeout(resolve, 5));
      await send(server, bytes.subarray(cut));
      const message = await reading;
      assertEquals(message?.head.split("\r\n")[0], "HTTP/1.1 200 OK");
      assertEquals(message?.text, text.slice(text.indexOf("\r\n\r\n") + 4), `cut at ${cut}`);
    }
  }
});

Deno.test("seeded stores pass the audit", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await (await openStore({ kind: "sqlite", path })).close();
    seedKeys(path, 300);
    await seedEntries(path, { count: 6_000, now: Date.UTC(2026, 10, 21) });
    const store = await openStore({ kind: "sqlite", path });
    assertEquals((await store.keys.list()).length, 300);
    const report = await auditLedger(store.ledger, { now: () => Date.UTC(2026, 10, 21) });
    await store.close();
    assertEquals([report.ok, report.checked.entries], [true, 6_000]);
  });
});

Deno.test("judge() compares a target with the minimal proxy, and reports missing measurements", () => {
  const figures = (cpuUs: number) => ({
    cpuUs,
    p50Us: 0,
    p99Us: 0,
    firstP50Us: 0,
    delayP50Us: NaN,
    requestsPerSecond: 0,
    busy: 1,
    rounds: [],
  });
  const results: Results = {
    scenarios: {
      "json 1k": { X: figures(80), sluice: figures(60) },
      "agent 60k": { X: figures(100), sluice: figures(60) },
      "agent 60k responses": { X: figures(100), sluice: figures(71) },
      "agent 60k messages": { X: figures(100), sluice: figures(50) },
      "burst": { X: figures(20), sluice: figures(4), direct: { failed: "Error" } },
    },
    streams: { "1000": { sluice: 240_000 }, "5000": { sluice: 260_000 } },
    starts: { sluice: 399, X: 200 },
  };
  const judged = new Map(judge(results, "sluice").map(({ aim, isMet }) => [aim, isMet]));
  assertEquals(judged.get("1 KB relayed, CPU / X"), true);
  assertEquals(judged.get("60 KB of an agent relayed, all protocols, CPU / X"), false);
  assertEquals(judged.get("burst relayed, CPU per event / X"), false);
  assertEquals(judged.get("burst translated, CPU per event / X"), null);
  assertEquals(judged.get("KB per slow translated stream"), false);
  assertEquals(judged.get("first answer after the start / X"), true);
});

import { assert } from "@std/assert";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { TRANSPORT_KINDS } from "../../lib/upstreams/select_transport.ts";
import { fuzz, startFuzzed } from "../fuzz/run.ts";
import { fuzzAnswers } from "../fuzz/run_answers.ts";
import { publish } from "./figures.ts";

/** Another one: `SLUICE_FUZZ_SEED=7 deno test -A tests/heavy/fuzz_test.ts`. It is part of every complaint. */
const SEED = Number(Deno.env.get("SLUICE_FUZZ_SEED") ?? 1);
const REQUESTS = Number(Deno.env.get("SLUICE_FUZZ_REQUESTS") ?? 100_000);
const ANSWERS = Number(Deno.env.get("SLUICE_FUZZ_ANSWERS") ?? 40_000);

/** Longest time for an answer: images are painted meanwhile, maybe on a busy machine. */
const PATIENCE_MS = 15_000;

/** Maximum growth of memory from the second part to the last, in bytes. */
const GROWTH_BYTES = 100 * 1024 ** 2;
const MIB = 1024 ** 2;
const PARTS = 20;

/** State after one part of the requests. */
interface Look {
  rss: number;
  descriptors: number;
}

Deno.test(`${REQUESTS} malformed requests (seed ${SEED}): no failure, no hang, no leak`, async () => {
  const folder = await Deno.makeTempDir({ prefix: "sluice-fuzz-" });
  const looks: Look[] = [];
  const start = performance.now();
  try {
    await using fuzzed = await startFuzzed(openSqliteStore(`${folder}/store.sqlite`, { own: true }));
    const { statuses, longestMs } = await fuzz(fuzzed, {
      seed: SEED,
      requests: REQUESTS,
      patienceMs: PATIENCE_MS,
      every: { requests: Math.ceil(REQUESTS / PARTS), look: () => looks.push(look()) },
    });
    const early = looks.slice(1, PARTS / 2);
    const late = looks.slice(PARTS / 2);
    const growth = median(late.map(({ rss }) => rss)) - median(early.map(({ rss }) => rss));
    const fds = [early, late].map((part) => Math.max(...part.map(({ descriptors }) => descriptors)));
    await publish("fuzz_requests", {
      seed: SEED,
      requests: REQUESTS,
      seconds: Math.round((performance.now() - start) / 1000),
      statuses: Object.fromEntries([...statuses].sort(([a], [b]) => a - b)),
      longest_ms: Math.round(longestMs),
      rss_mib: looks.map(({ rss }) => Math.round(rss / MIB)),
      rss_growth_mib: Math.round(growth / MIB),
      descriptors: fds,
    });
    for (const status of [200, 400]) assert((statuses.get(status) ?? 0) > REQUESTS / 10, "the requests are all alike");
    assert(growth <= GROWTH_BYTES, `memory grew by ${Math.round(growth / MIB)} MiB`);
    assert((fds[1] ?? 0) <= (fds[0] ?? 0) + 20, `descriptors: ${fds}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test(`${ANSWERS} malformed upstream answers (seed ${SEED}): errors in each client's protocol, no leak`, async () => {
  const start = performance.now();
  const seen: Record<string, Record<string, number>> = {};
  for (const [number, transport] of TRANSPORT_KINDS.entries()) {
    const part = { seed: SEED + number, answers: Math.ceil(ANSWERS / TRANSPORT_KINDS.length), transport };
    seen[transport] = Object.fromEntries([...await fuzzAnswers(part)].map(([name, count]) => [String(name), count]));
  }
  await publish("fuzz_answers", {
    seed: SEED,
    answers: ANSWERS,
    seconds: Math.round((performance.now() - start) / 1000),
    seen,
  });
});

function look(): Look {
  return { rss: Deno.memoryUsage().rss, descriptors: [...Deno.readDirSync("/proc/self/fd")].length };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

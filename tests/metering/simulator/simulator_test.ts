import { assert, assertEquals } from "@std/assert";
import { inFolder } from "../../store/in_folder.ts";
import { BUGS } from "./bugs.ts";
import { openSqliteDisk } from "./disk.ts";
import { Failure, simulate, type Summary } from "./simulate.ts";

/** Runs of the suite; `SEED=n` runs that one alone. */
const SEEDS = 5_000;
/** Runs over a file. */
const FILE_SEEDS = 60;
/** Runs within which a planted bug must be found. */
const BUG_SEEDS = 400;

const only = Deno.env.get("SEED");

Deno.test("simulator: no seed breaks an invariant, whatever fails, crashes, leaves or comes late", async () => {
  const seeds = only === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(only)];
  const seen = new Map<string, number>();
  let crashes = 0;
  for (const seed of seeds) {
    const summary: Summary = await simulate(seed);
    crashes += summary.crashes;
    for (const name of [...summary.endings, ...summary.refusals]) seen.set(name, (seen.get(name) ?? 0) + 1);
  }
  if (only !== undefined) return;
  assert(crashes > 500, `Only ${crashes} crashes`);
  const rare = ["end", "done", "partial", "abandoned", "failed", "refused", "lost", "insufficient_quota", "overloaded"];
  for (const name of [...rare, "rate_limit_requests", "rate_limit_tokens", "concurrency_limit"]) {
    assert((seen.get(name) ?? 0) >= 100, `"${name}" came only ${seen.get(name) ?? 0} times`);
  }
});

Deno.test("simulator: a seed gives the same run again", async () => {
  for (const seed of [1, 2, 3]) assertEquals(await simulate(seed), await simulate(seed));
});

Deno.test("simulator: nor over a file, and the files of a process that died", async () => {
  await inFolder(async (folder) => {
    let crashes = 0;
    for (let seed = 1; seed <= FILE_SEEDS; seed++) {
      crashes += (await simulate(seed, { disk: () => openSqliteDisk(`${folder}/${seed}`) })).crashes;
    }
    assert(crashes > 0);
  });
});

for (const { name, breaks, variant } of BUGS) {
  Deno.test(`simulator: finds the bug "${name}"`, async () => {
    const failure = await firstFailure(variant);
    assert(failure !== undefined, `No seed up to ${BUG_SEEDS} finds it`);
    assert(breaks.includes(failure.invariant ?? ""), failure.message);
    const again = await simulate(failure.seed, variant).catch((thrown: unknown) => thrown);
    assertEquals(again instanceof Failure && again.message, failure.message);
  });
}

async function firstFailure(variant: Parameters<typeof simulate>[1]): Promise<Failure | undefined> {
  for (let seed = 1; seed <= BUG_SEEDS; seed++) {
    try {
      await simulate(seed, variant);
    } catch (thrown) {
      if (thrown instanceof Failure) return thrown;
      throw thrown;
    }
  }
}

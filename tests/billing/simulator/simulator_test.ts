import { assert, assertEquals, assertLessOrEqual, assertThrows } from "@std/assert";
import { postgresTest } from "../../support/databases.ts";
import { inFolder } from "../../store/in_folder.ts";
import { BUGS } from "./bugs.ts";
import { openSqliteDisk, withPostgresDisks } from "./disk.ts";
import { historyOf, readHistory, shrink, writeHistory } from "./history.ts";
import { firstFailure, runAll, seedsFrom, shortest } from "./search.ts";
import { Failure, simulate } from "./simulate.ts";
import { QUICK, rounds, skipInQuick } from "../../support/skip.ts";

/** Number of runs. `SEED=n` begins with another seed; `HISTORY=n` or `HISTORY=n:steps` runs only that history. */
const SEEDS = QUICK ? 9 : rounds(900);
/** Runs over a file. */
const FILE_SEEDS = rounds(20);
/** Runs over a database. */
const POSTGRES_SEEDS = 4;
/** Runs within which a planted bug must be found. */
const BUG_SEEDS = 400;
/**
 * Planted bugs whose histories are minimized, which takes longer than to find them: `deno task heavy` does it for all.
 */
const MINIMIZED = 1;
/** Maximum number of steps in a shortened history that shows a planted bug. */
const BUG_STEPS = 120;

const first = Number(Deno.env.get("SEED") ?? 1);
const only = Deno.env.get("HISTORY");

Deno.test("simulator: no random history with failures and crashes violates an invariant", async () => {
  skipInQuick("Most histories of the simulator");
  const { crashes, seen } = await runAll(only === undefined ? seedsFrom(first, SEEDS) : [readHistory(only)]);
  if (only !== undefined) return;
  assert(crashes > SEEDS * 0.3, `Only ${crashes} crashes`);
  if (QUICK) return;
  const rare = "end done partial client_disconnected failed refused lost insufficient_quota overloaded".split(" ");
  for (const name of [...rare, "rate_limit_requests", "rate_limit_tokens", "concurrency_limit"]) {
    assert((seen.get(name) ?? 0) > SEEDS / 100, `"${name}" came only ${seen.get(name) ?? 0} times`);
  }
});

Deno.test("simulator: the same seed gives the same run", async () => {
  for (const seed of QUICK ? [1] : [1, 2, 3]) assertEquals(await simulate(seed), await simulate(seed));
});

Deno.test("simulator: no history violates an invariant over a file with process crashes", async () => {
  await inFolder(async (folder) => {
    let disks = 0;
    const disk = () => openSqliteDisk(`${folder}/${disks++}`);
    const { crashes } = await runAll(seedsFrom(first, FILE_SEEDS), { disk });
    assert(crashes > 0);
  });
});

postgresTest(
  "simulator: no history violates an invariant over Postgres with several processes",
  () =>
    withPostgresDisks(async (disk) => {
      const { runs } = await runAll(seedsFrom(first, POSTGRES_SEEDS), { disk });
      assertEquals(runs, POSTGRES_SEEDS);
    }),
);

Deno.test("simulator: a failing history is saved, reloaded and minimized", async () => {
  for (const history of [historyOf(7), { seed: 7, steps: [0, 3, 90] }, { seed: 7, steps: [] }]) {
    assertEquals(readHistory(writeHistory(history)), history);
  }
  for (const text of ["", "x", "1:a", "-1", "1:2:3"]) assertThrows(() => readHistory(text), RangeError);
  const needed = [11, 12, 77];
  const fails = ({ steps }: { steps: readonly number[] }) => Promise.resolve(needed.every((n) => steps.includes(n)));
  assertEquals(await shrink(historyOf(7), fails), { seed: 7, steps: needed });
});

const ignore = skipInQuick("Planted bugs of the simulator");
for (const [index, { name, breaks, variant, seed = 1 }] of BUGS.entries()) {
  Deno.test(`simulator: finds the bug "${name}"`, { ignore }, async () => {
    const failure = await firstFailure(seedsFrom(seed, BUG_SEEDS), variant);
    assert(failure !== undefined, `No seed from ${seed} on finds it`);
    assert(breaks.includes(failure.invariant ?? ""), failure.message);
    if (index >= MINIMIZED) return;
    const short = await shortest(failure, variant);
    assertEquals(short.invariant, failure.invariant);
    assertLessOrEqual(short.history.steps.length, BUG_STEPS, short.message);
    const again = await simulate(short.history, variant).catch((thrown: unknown) => thrown);
    assertEquals(again instanceof Failure && again.message, short.message);
  });
}

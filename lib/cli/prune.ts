/** `prune`: deletes ledger entries older than `ledger.keep_days`. */
import type { Config } from "../config.ts";
import { DAY_MS, dayOf } from "../store/days.ts";
import { counted, writeOut } from "./output.ts";
import { withStore } from "./command_store.ts";

/** Returns the first day whose entries are kept, in days since 1970-01-01: `keep_days` days before today. */
export function firstKeptDay({ ledger }: Pick<Config, "ledger">, now: number): number {
  return dayOf(now) - ledger.keep_days;
}

/** Prunes all old entries. A gateway may be running meanwhile. */
export function prune({ config }: { config: Config }): Promise<number> {
  return withStore(config, async ({ ledger, operators }) => {
    const before = await ledger.start();
    const now = Date.now();
    while (await ledger.prune(firstKeptDay(config, now), dayOf(now)));
    await operators.pruneChanges(firstKeptDay(config, now) * DAY_MS);
    const after = await ledger.start();
    const count = after.seq - before.seq;
    writeOut(
      `Pruned ${counted(count, "entry", "entries")} older than ${config.ledger.keep_days} days; ` +
        "the sums per day are kept\n",
    );
    return 0;
  }, { readOnly: false });
}

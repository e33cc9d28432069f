/** The gateway is killed at random moments under load, and started again: the books, budgets and keys are right each time. */
import { Secret } from "../../lib/secret.ts";
import { configFor, type Crashes, crashOften, ENV } from "../e2e/program/crashes.ts";
import { createLoad, type Load } from "../e2e/program/load.ts";
import { HAS_POSTGRES, startPostgres } from "../support/databases.ts";
import { inFolder } from "../support/program.ts";
import { type Figure, publish } from "./figures.ts";

const kills = Number(Deno.env.get("HEAVY_KILLS") ?? 30);

const figures: Record<string, Figure> = {};

function figuresOf({ entries, complete, unseen, lost, keys, starts }: Crashes, { requests }: Load): Figure {
  const ids = new Set(entries.map(({ id }) => id));
  return {
    kills,
    requests: requests.length,
    complete_answers: complete,
    complete_answers_missing: 0,
    entered_twice: entries.length - ids.size,
    charged_but_unseen: unseen,
    lost_uncharged: lost,
    /** Free answers of errors, whose entries were not written yet. */
    free_answers_missing:
      requests.filter(({ id = "", paid }) => id !== "" && paid === undefined && !ids.has(id)).length,
    entries: entries.length,
    keys_acknowledged: keys,
    keys_missing: 0,
    ready_ms: { median: starts[starts.length >> 1] ?? 0, max: starts.at(-1) ?? 0 },
  };
}

Deno.test(`${kills} kills with the ledger in SQLite: no answer lost, none entered twice, keys and budgets consistent`, () =>
  inFolder(async (folder) => {
    await using load = createLoad(Math.random);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, { store: "sqlite:./sluice.db" }));
    const address = { kind: "sqlite", path: `${folder}/sluice.db` } as const;
    const crashes = await crashOften({ folder, env: ENV }, { address, load, isShared: false, kills });
    figures.sqlite = figuresOf(crashes, load);
    await publish("crash", figures);
  }));

Deno.test({
  name: `${kills} kills with the ledger in Postgres: the same, and holds of dead processes expire with their lease`,
  ignore: !HAS_POSTGRES,
  fn: () =>
    inFolder(async (folder) => {
      await using load = createLoad(Math.random);
      await using postgres = await startPostgres();
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, {}));
      const address = { kind: "postgres", url: new Secret(postgres.url) } as const;
      const place = { folder, env: { ...ENV, SLUICE_STORE: postgres.url } };
      figures.postgres = figuresOf(await crashOften(place, { address, load, isShared: true, kills }), load);
      await publish("crash", figures);
    }),
});

import { assert } from "@std/assert";
import { inFolder } from "../../support/program.ts";
import { configFor, crashOften, ENV } from "./crashes.ts";
import { createLoad } from "./load.ts";

/** `deno task heavy` has more. */
const kills = 4;

Deno.test(`complete answers are in the ledger exactly once through ${kills} kills, and nothing else is charged`, () =>
  inFolder(async (folder) => {
    await using load = createLoad(Math.random);
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(load, { store: "sqlite:./sluice.db" }));
    const address = { kind: "sqlite", path: `${folder}/sluice.db` } as const;
    // More load takes only more CPU time.
    await crashOften({ folder, env: ENV }, { address, load, isShared: false, kills, restMs: 50 });
    for (const way of ["refused", "cut", "left"]) assert(load.requests.some((one) => one.way === way), way);
  }));

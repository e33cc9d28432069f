import { assert } from "@std/assert";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { seeded } from "../../support/random.ts";
import { mix } from "./mix.ts";

/** `SEED=n` gives other requests; `tests/heavy/money_test.ts` sends many more of them, over every store. */
const SEED = Number(Deno.env.get("SEED") ?? 1);

Deno.test(`clients of a whole gateway pay for what they received, however requests end, SEED=${SEED}`, async () => {
  const wanted = 120;
  const random = seeded(SEED);
  const { requests, complete, endings, tiers } = await mix(openMemoryStore(), { requests: wanted, random });
  assert(requests > wanted && complete > wanted / 4, JSON.stringify(endings));
  assert((tiers[0] ?? 0) > 0 && (tiers[10] ?? 0) > 0, JSON.stringify(tiers));
  for (const ending of ["end", "done", "partial", "client_disconnected", "failed", "refused"]) {
    assert((endings[ending] ?? 0) > 0, `"${ending}" never came`);
  }
});

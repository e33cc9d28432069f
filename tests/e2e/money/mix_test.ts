import { assert } from "@std/assert";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { seeded } from "../../support/random.ts";
import { mix } from "./mix.ts";

/** `SEED=n` gives other requests; `tests/heavy/money_test.ts` sends many more of them, over every store. */
const SEED = Number(Deno.env.get("SEED") ?? 1);

Deno.test(`clients of a whole gateway pay for what they received, however requests end, SEED=${SEED}`, async () => {
  const { requests, complete, endings, tiers } = await mix(openMemoryStore(), { requests: 800, random: seeded(SEED) });
  assert(requests > 800 && complete > 400, JSON.stringify(endings));
  assert((tiers[0] ?? 0) > 5 && (tiers[10] ?? 0) > 5, JSON.stringify(tiers));
  for (const ending of ["end", "done", "partial", "client_disconnected", "failed", "refused"]) {
    assert((endings[ending] ?? 0) > 5, `"${ending}" came only ${endings[ending] ?? 0} times`);
  }
});

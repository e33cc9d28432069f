import { assertEquals } from "@std/assert";
import { TRANSPORT_KINDS } from "../../../lib/upstreams/select_transport.ts";
import { PROTOCOLS } from "../../upstream/replies.ts";
import { FAULTS } from "./matrix/faults.ts";
import { SPOKEN } from "./matrix/sound_answer.ts";
import { type Cell, startBench } from "./matrix/trial.ts";
import { skipInQuick } from "../../support/skip.ts";

/** Pairs of client and upstream protocol. */
const PAIRS = PROTOCOLS.flatMap((client) => SPOKEN.map((spoken) => ({ client, spoken })));

const isHalf = skipInQuick("Every fault streamed and whole");

/** Faults within a stream, which every pair of protocols meets. */
const EVERY_PAIR: ReadonlySet<string> = new Set(["an error in the middle", "closed in the middle", "half an event"]);

/**
 * Every fault twice, streamed and whole, each time for another pair and over the other transport, and some faults for
 * all pairs. A quick run has every second fault streamed, the others whole, and a third of
 * the pairs for each of those.
 */
function sample(): { cell: Cell; carrier: number }[] {
  const ofAllPairs = FAULTS.filter(({ name }) => EVERY_PAIR.has(name)).flatMap((fault, number) =>
    PAIRS.map((pair, index) => ({ cell: { fault, stream: true, ...pair }, carrier: index % TRANSPORT_KINDS.length }))
      .filter((_, index) => !isHalf || index % EVERY_PAIR.size === number)
  );
  const sampled = FAULTS.flatMap((fault, index) =>
    [true, false].flatMap((stream, kind) => {
      const pair = PAIRS[(index * 2 + kind) % PAIRS.length];
      return pair === undefined || (isHalf && kind !== index % 2)
        ? []
        : [{ cell: { fault, stream, ...pair }, carrier: ((index >> 1) + kind) % TRANSPORT_KINDS.length }];
    })
  );
  return [...ofAllPairs, ...sampled];
}

for (const [number, transport] of TRANSPORT_KINDS.entries()) {
  Deno.test(`wire faults over ${transport}: reported in the client's protocol, free of charge, and cleaned up`, async () => {
    await using bench = startBench(transport);
    for (const { cell, carrier } of sample()) {
      if (carrier === number) await bench.meet(cell);
    }
  });
}

Deno.test("the names of faults are unique", () => {
  const names = FAULTS.map(({ name }) => name);
  assertEquals(names.length, new Set(names).size);
});

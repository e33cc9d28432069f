import { assertEquals } from "@std/assert";
import { TRANSPORT_KINDS } from "../../../lib/upstreams/select_transport.ts";
import { ALL_PROTOCOLS } from "../../upstream/replies.ts";
import { FAULTS } from "./matrix/faults.ts";
import { SPOKEN } from "./matrix/sound_answer.ts";
import { type Cell, startBench } from "./matrix/trial.ts";
import { skipInQuick } from "../../support/skip.ts";

/** Pairs of client and upstream protocol. */
const PAIRS = ALL_PROTOCOLS.flatMap((client) => SPOKEN.map((spoken) => ({ client, spoken })));

const isHalf = skipInQuick("Every fault streamed and whole");

/**
 * Every fault twice, streamed and whole, each time for another pair and over the other transport. A quick run has every
 * second fault streamed, and the others whole.
 */
function sample(): { cell: Cell; carrier: number }[] {
  return FAULTS.flatMap((fault, index) =>
    [true, false].flatMap((stream, kind) => {
      const pair = PAIRS[(index * 2 + kind) % PAIRS.length];
      return pair === undefined || (isHalf && kind !== index % 2)
        ? []
        : [{ cell: { fault, stream, ...pair }, carrier: (index + kind) % TRANSPORT_KINDS.length }];
    })
  );
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

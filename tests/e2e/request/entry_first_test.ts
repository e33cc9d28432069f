import { assert, assertEquals } from "@std/assert";
import { othersTurns } from "../../support/others_turns.ts";
import { soon } from "../../support/soon.ts";
import { PROTOCOLS, SUCCESS } from "../../upstream/replies.ts";
import { usd } from "./bills.ts";
import {
  answers,
  ask,
  checkEntry,
  COMPLETE,
  disconnectsAfter,
  disconnectWatch,
  heldBy,
  HTTP,
  streamsThen,
} from "./exchange.ts";
import { gatedStore, startWorld } from "./world.ts";

Deno.test("a client that disconnects while its complete answer is being entered pays for all of it, once", async () => {
  for (const way of HTTP) {
    for (const protocol of PROTOCOLS) {
      for (const onDisconnect of ["cancel", "drain"] as const) {
        const about = `${protocol} ${way} ${onDisconnect}`;
        const { store, arrived, open } = gatedStore();
        const { gone, gateway } = disconnectWatch();
        // Frames that are read together with the ending wait for the entry, too.
        const read = Promise.withResolvers<void>();
        await using world = startWorld({
          protocol,
          way,
          onDisconnect,
          ...streamsThen(4, ({ ending }) => [read.promise, ...ending])({ protocol, way, gone }),
          gateway: { ...gateway, store },
        });
        const disconnect = new AbortController();
        const response = await ask(world, true, disconnect.signal);
        const then = () => {
          read.resolve();
          return soon(`${about}: the entry`, arrived);
        };
        const got = await disconnectsAfter(response, heldBy(protocol, way) > 0 ? "zeta" : "theta", {
          disconnect,
          then,
        });
        await soon(`${about}: the client's disconnect`, gone());
        open();
        const entry = await world.entry();
        assert(!got.includes(SUCCESS[protocol]), about);
        assertEquals(got.includes("sluice_cost"), false, about);
        checkEntry(entry, { world, expected: { ...COMPLETE, ending: entry.ending }, about });
        await world.assertSettled(entry, about);
      }
    }
  }
});

Deno.test("the end of an answer is sent only after its entry is durable", async () => {
  for (const way of [...HTTP, "embedded"] as const) {
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        const about = `${protocol} ${way} ${stream}`;
        const { store, arrived, open } = gatedStore();
        await using world = startWorld({
          protocol,
          way,
          gateway: { store },
          ...answers("reported")({ protocol, way }),
        });
        let got = "";
        let answered = false;
        const reading = ask(world, stream).then(async (response) => {
          answered = true;
          for await (const bytes of response.body ?? []) got += new TextDecoder().decode(bytes);
        });
        await soon(`${about}: the entry`, arrived);
        await othersTurns();
        assertEquals([answered && !stream, got.includes(SUCCESS[protocol])], [false, false], about);
        for (const word of ['"usage":{', "sluice_cost", "[DONE]"]) {
          // The beginning of a message reports its input.
          const later = protocol === "messages" ? got.slice(got.indexOf("content_block_start")) : got;
          assert(!later.includes(word), `${about}: ${word} in ${got}`);
        }
        open();
        await reading;
        assert(!stream || got.includes(SUCCESS[protocol]), about);
        const { cost } = await world.entry();
        assert(!stream || got.includes(`"sluice_cost":"${usd(cost)}"`), about);
      }
    }
  }
});

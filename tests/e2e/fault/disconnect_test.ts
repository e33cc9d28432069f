import { assert } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { type Disconnect, MANNERS, PHASES, timesOf } from "./disconnect.ts";
import { rounds, skipInQuick } from "../../support/skip.ts";

/** Longest time from a disconnect to the end of the upstream request, in milliseconds. */
const SOON_MS = 2_000;

const PAIRS: readonly [client: Protocol, upstream: Protocol][] = [
  ["chat", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["chat", "messages"],
  ["messages", "responses"],
  ["responses", "chat"],
  ["gemini", "gemini"],
  ["chat", "gemini"],
  ["gemini", "messages"],
  ["gemini", "chat"],
];

const FEW = skipInQuick("Disconnects in each phase and manner for two of three pairs of protocols");

for (const transport of ["http1", "fetch"]) {
  for (const [at, phase] of (Object.keys(PHASES) as Disconnect["phase"][]).entries()) {
    Deno.test(`${transport}: a disconnect ${phase} cancels the upstream at once`, async () => {
      for (const [place, manner] of (Object.keys(MANNERS) as Disconnect["manner"][]).entries()) {
        // The end of a client's connection does not concern the transport.
        if (transport === "fetch" && manner !== "close") continue;
        for (const [index, [client, upstream]] of PAIRS.entries()) {
          if (FEW && (index + at + place) % 3 > 0) continue;
          const what = { client, upstream, transport, phase, manner, times: rounds(3) };
          const [first = Infinity, median = first] = await timesOf(what);
          assert(median <= SOON_MS, `${client}, ${upstream}, ${manner}: ${first} and ${median} ms`);
        }
      }
    });
  }
}

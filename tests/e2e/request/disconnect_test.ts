import { assert, assertEquals } from "@std/assert";
import { othersTurns } from "../../support/others_turns.ts";
import { type Random, seeded } from "../../support/random.ts";
import { pause, until } from "../../support/soon.ts";
import { rounds, skipInQuick } from "../../support/skip.ts";
import { limitedTo, prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { frames, whole } from "../../upstream/frames.ts";
import type { Step } from "../../upstream/mod.ts";
import { spokenBy, startWorld, type Way } from "./world.ts";

const IS_SAMPLE = skipInQuick("Clients that disconnect, in three of four protocols");
const AT_ONCE = 24;
const MOST = Math.max(40, rounds(240));
/** Each client of the embedded model gets a long answer. */
const CLIENTS = { relayed: MOST, translated: MOST, embedded: Math.max(AT_ONCE, rounds(72)) };

/**
 * The earliest moment at which a client may disconnect: at once, after the call of its model, at the beginning of the
 * answer, or after its first part. With fixed delays, all clients might disconnect before anything has happened on a
 * busy machine.
 */
const MOMENTS = ["sent", "asked", "answered", "read"] as const;

function* withPauses(steps: readonly string[], random: Random): Generator<Step> {
  for (const step of steps) {
    if (random.chance(0.3)) yield pause(random.next() * 8);
    yield step;
  }
}

for (const way of ["relayed", "translated", "embedded"] as const satisfies Way[]) {
  for (const onDisconnect of ["cancel", "drain"] as const) {
    Deno.test(`${way}, ${onDisconnect}: whenever clients disconnect, every request has one entry and one line, and nothing stays reserved`, async () => {
      const random = seeded(way.length * 7 + onDisconnect.length);
      const endings = new Set<string>();
      for (const [index, protocol] of PROTOCOLS.entries()) {
        if (IS_SAMPLE && (index + way.length + onDisconnect.length) % 4 > 0) continue;
        /** Called when the model is asked, by the number in the prompt. */
        const requested = new Map<string, () => void>();
        await using world = startWorld({
          protocol,
          way,
          onDisconnect,
          says: ({ stream, body }) => {
            requested.get(/client (\d+)/.exec(body)?.[1] ?? "")?.();
            const spoken = spokenBy(protocol, way);
            const before = random.chance(0.5) ? pause(random.next() * 12) : undefined;
            const head = before === undefined ? {} : { before };
            if (!stream) return { ...head, steps: [whole(spoken, "Hello there", "reported")] };
            const { opening, pieces, ending } = frames(spoken, ["one ", "two ", "three"], "reported");
            const steps = withPauses([...opening, ...pieces, ...ending], random);
            return { ...head, steps, cut: random.chance(0.1) };
          },
        });
        const { gateway } = world.gateway;
        let clients = 0;
        const client = async () => {
          while (clients < CLIENTS[way]) {
            const number = String(clients++);
            const disconnect = new AbortController();
            const stream = random.chance(0.7);
            const moment = random.chance(0.15) ? "never" : random.pick(MOMENTS);
            const ms = random.next() * (moment === "sent" ? 24 : 4);
            let timer: ReturnType<typeof setTimeout> | undefined;
            const come = (now: typeof moment) => {
              if (now === moment) timer ??= setTimeout(() => disconnect.abort(), ms);
            };
            requested.set(number, () => come("asked"));
            // The embedded model is fast: many clients must disconnect before its answer is complete.
            const text = `client ${number}: ` + "one two three ".repeat(way === "embedded" ? 400 : 1);
            // Without a limit each would hold so much of the budget that most of those at once are refused.
            const body = { ...limitedTo(protocol, 10_000), stream };
            try {
              come("sent");
              const requestBody = prompt(protocol, body, text);
              const response = await world.gateway.ask(protocol, requestBody, { signal: disconnect.signal });
              come("answered");
              for await (const _ of response.body ?? []) come("read");
            } catch {
              // The client has disconnected, or its answer was cut.
            }
            clearTimeout(timer);
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, client));
        // Each of them ends by itself; one that does not would remain reserved.
        await until(`${protocol}: the end of all requests`, () => gateway.inFlight.count() === 0);
        await gateway.backgroundTasks.done();
        // Pending output of the upstream is discarded.
        await othersTurns(4);
        await gateway.ledger.flush();
        const entries = await world.gateway.store.ledger.entries({ after: 0, limit: 10_000 });
        const lines = world.gateway.requestLines;
        await until("a line of each request", () => lines.length >= entries.length);
        assertEquals(lines.map(({ request_id }) => request_id).sort(), entries.map(({ id }) => id).sort(), protocol);
        await world.assertNothingTaken(entries.reduce((sum, { cost }) => sum + cost, 0n), protocol);
        // A request may be aborted before it has arrived there.
        const attempts = entries.reduce((sum, { attempts }) => sum + attempts, 0);
        assert(way === "embedded" || attempts >= world.upstream.requests.length, protocol);
        assertEquals(new Set(entries.map(({ id }) => id)).size, entries.length);
        assert(entries.length > CLIENTS[way] / 2);
        for (const { ending, cost } of entries) {
          endings.add(ending);
          assertEquals(cost > 0n, ending !== "failed" && ending !== "refused");
        }
      }
      // Some were early enough, and some were not.
      assert(endings.size > 1, [...endings].join());
    });
  }
}

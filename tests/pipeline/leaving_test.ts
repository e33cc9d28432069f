import { assert, assertEquals } from "@std/assert";
import { prompt, PROTOCOLS } from "../upstreams/said.ts";
import { frames, whole } from "./spoken.ts";
import { spokenBy, startWorld, type Way } from "./world.ts";

const CLIENTS = 240;
const AT_ONCE = 24;

/** Numbers that look random and are the same every time. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

for (const way of ["relayed", "translated", "embedded"] as const satisfies Way[]) {
  for (const onDisconnect of ["cancel", "drain"] as const) {
    Deno.test(`${way}, ${onDisconnect}: whenever clients leave, every request has one entry and nothing stays taken`, async () => {
      const random = createRandom(way.length * 7 + onDisconnect.length);
      for (const protocol of PROTOCOLS) {
        await using world = startWorld({
          protocol,
          way,
          onDisconnect,
          says: ({ stream }) => {
            const spoken = spokenBy(protocol, way);
            const before = random() < 0.5 ? pause(random() * 12) : undefined;
            const head = before === undefined ? {} : { before };
            if (!stream) return { ...head, steps: [whole(spoken, "Hello there", "told")] };
            const { opening, pieces, ending } = frames(spoken, ["one ", "two ", "three"], "told");
            const steps = [...opening, ...pieces, ...ending].flatMap((step) =>
              random() < 0.3 ? [pause(random() * 8), step] : [step]
            );
            return { ...head, steps, cut: random() < 0.1 };
          },
        });
        const { gateway } = world.gateway;
        let asked = 0;
        const client = async () => {
          while (asked < CLIENTS) {
            asked++;
            const leave = new AbortController();
            const stream = random() < 0.7;
            // Some stay: on a busy machine all others may leave before anything came.
            const timer = setTimeout(() => leave.abort(), random() < 0.15 ? 60_000 : random() * 24);
            // The embedded model is fast: many shall leave before it has said all.
            const text = "one two three ".repeat(way === "embedded" ? 2_000 : 1);
            const body = protocol === "responses" ? { input: text } : { messages: [{ role: "user", content: text }] };
            await world.gateway.ask(protocol, prompt(protocol, { ...body, stream }), { signal: leave.signal })
              .then((response) => response.text()).catch(() => {});
            clearTimeout(timer);
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, client));
        // Each of them ends by itself; what does not would show as taken.
        for (const deadline = performance.now() + 5_000; gateway.running.count() > 0;) {
          assert(performance.now() < deadline, `${protocol}: ${gateway.running.count()} requests never ended`);
          await pause(5);
        }
        await gateway.afterwork.done();
        // What the upstream was about to say is over.
        await pause(20);
        await gateway.ledger.flush();
        const entries = await world.gateway.store.ledger.entries({ after: 0, limit: 10_000 });
        await world.assertNothingTaken(entries.reduce((sum, { cost }) => sum + cost, 0n), protocol);
        // A request may be given up before it has arrived there.
        const attempts = entries.reduce((sum, { attempts }) => sum + attempts, 0);
        assert(way === "embedded" || attempts >= world.upstream.asked.length, protocol);
        assertEquals(new Set(entries.map(({ id }) => id)).size, entries.length);
        const endings = new Set(entries.map(({ ending }) => ending));
        assert(entries.length > CLIENTS / 2 && endings.size > 1, [...endings].join());
        for (const { ending, cost } of entries) assertEquals(cost > 0n, ending !== "failed" && ending !== "refused");
      }
    });
  }
}

import { assertEquals } from "@std/assert";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { frames } from "../../upstream/frames.ts";
import { events, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { skipInQuick } from "../../support/skip.ts";
import { disconnectsAfter } from "./exchange.ts";

/** More requests than a breaker counts before it opens at half of them. */
const CLIENTS = 12;

for (const spoken of PROTOCOLS) {
  Deno.test(`clients that disconnect do not count against an upstream that speaks ${spoken}`, async () => {
    const { opening, pieces } = frames(spoken, ["one ", "two ", "three"], "reported");
    /** Called when a request has arrived whose answer never begins. */
    let arrived: (() => void) | undefined;
    const answer = async ({ gone }: UpstreamRequest): Promise<ScriptedAnswer> => {
      // Some writers keep an event until the next one has come.
      if (arrived === undefined) return events("", { steps: [...opening, ...pieces, gone] });
      arrived();
      await gone;
      return { status: 500 };
    };
    await using upstream = startUpstream(answer);
    for (const protocol of skipInQuick("Clients of every protocol that disconnect") ? [spoken] : PROTOCOLS) {
      for (const [stream, hasBegun] of [[true, true], [true, false], [false, false]]) {
        await using gateway = startGateway(oneModel(spoken, upstream.url), { breakers: true });
        const body = prompt(protocol, { model: "acme/one", stream });
        for (let client = 0; client < CLIENTS; client++) {
          const disconnect = new AbortController();
          arrived = hasBegun ? undefined : () => disconnect.abort();
          const answer = gateway.ask(protocol, body, { signal: disconnect.signal });
          if (hasBegun) await disconnectsAfter(await answer, "one", { disconnect });
          else await answer.catch(() => {});
        }
        await gateway.gateway.backgroundTasks.done();
        const states = gateway.gateway.health.snapshot().map(({ state }) => state);
        assertEquals(states.filter((state) => state !== "closed"), [], `${protocol}, ${stream}, ${hasBegun}`);
      }
    }
  });
}

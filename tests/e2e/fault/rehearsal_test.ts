import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { entriesOf } from "../request/world.ts";
import { model, startGateway, type TestGateway, upstream, VENDORS } from "../../support/gateway.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import type { Seen } from "./matrix/fault.ts";
import { endOf, type Got } from "./matrix/seen.ts";
import { type Rehearsal, REHEARSALS, type Stall } from "./rehearsals.ts";
import { startServer } from "../../fault/start_server.ts";
import { until } from "../../support/soon.ts";

/** Ways of a request to its fault: in its own protocol, in another one, or not out of the process at all. */
const WAYS = ["relayed", "translated", "embedded"] as const;
type Way = typeof WAYS[number];

const OTHER: Readonly<Record<Protocol, Protocol>> = {
  chat: "messages",
  responses: "gemini",
  messages: "responses",
  gemini: "chat",
};

/**
 * Time limits for faults that must run into them, in milliseconds: at once, or after some events, which must have arrived
 * before on a busy machine too.
 */
const TIMEOUTS: Readonly<Record<Stall, JsonObject>> = {
  "at once": { first_byte_ms: 150, idle_ms: 150, total_ms: 400 },
  "after events": { first_byte_ms: 60_000, idle_ms: 900, total_ms: 60_000 },
};

/** USD per token: every successful answer has a cost. */
const PRICING = { prompt: "0.000001", completion: "0.000002" };

function gatewayFor(
  url: string,
  { way, protocol, stalls }: { way: Way; protocol: Protocol; stalls: Stall | undefined },
): TestGateway {
  const spoken = way === "translated" ? OTHER[protocol] : protocol;
  const target = way === "embedded"
    ? { upstream: "embedded", model: "fault" }
    : { upstream: "faulty", model: "real-one", protocol: spoken };
  return startGateway({
    upstreams: { faulty: upstream(VENDORS[spoken], url) },
    models: [
      model("acme/one", [{ ...target, ...(stalls !== undefined && { timeouts: TIMEOUTS[stalls] }) }], {
        pricing: PRICING,
      }),
    ],
    groups: {
      default: { key_limits: { concurrency: 1 }, key_budget: { usd: "1", period: "total" } },
    },
  });
}

/** Asserts what a client saw, in the shape of its protocol. */
function assertSeen(
  got: Got,
  { seen, rehearsal, protocol, stream }: { seen: Seen; rehearsal: Rehearsal; protocol: Protocol; stream: boolean },
): void {
  const about = `${got.status} ${got.text.slice(0, 1_000)}`;
  const end = endOf(got, { protocol, stream });
  assertEquals(end.seen, protocol === "messages" ? rehearsal.messages ?? seen : seen, about);
  if (seen === "answer") return assert(/wörd 1 🙂.*wörd 10 🙂/s.test(end.words), about);
  for (const [name, value] of Object.entries(rehearsal.headers ?? {})) assertEquals(got.headers.get(name), value);
  if (rehearsal.says !== undefined) assertMatch(got.text, rehearsal.says);
}

for (const way of WAYS) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`every fault, ${protocol}, ${way}: the error has the protocol's shape, nothing leaks, and failures are free`, async () => {
      await using server = startServer();
      await using gateways = new AsyncDisposableStack();
      const byStall = new Map<Stall | undefined, { gateway: TestGateway; asked: number }>();
      for (const rehearsal of REHEARSALS.filter(({ wire }) => way !== "embedded" || wire !== true)) {
        const { stalls } = rehearsal;
        const used = byStall.get(stalls) ??
          { gateway: gateways.use(gatewayFor(server.url, { way, protocol, stalls })), asked: 0 };
        byStall.set(stalls, used);
        const { gateway } = used;
        for (const stream of [true, false]) {
          const about = `${rehearsal.ask}, ${stream ? "streamed" : "whole"}`;
          const seen = stream ? rehearsal.streamed : rehearsal.whole;
          try {
            const body = { stream, ...(protocol === "messages" && { max_tokens: 100_000 }) };
            const response = await gateway.ask(protocol, prompt(protocol, body, rehearsal.ask));
            const text = await response.text();
            assertSeen({ status: response.status, headers: response.headers, text }, {
              seen,
              rehearsal,
              protocol,
              stream,
            });
            await assertSettled(gateway, { seen, rehearsal, count: ++used.asked });
          } catch (error) {
            throw new Error(about, { cause: error });
          }
          assertEquals(gateway.logs.filter(({ level }) => level === "error"), [], about);
        }
      }
      // The host releases soon what the gateway released.
      await until("the upstream let go", () => server.busy === 0);
      assertEquals([server.busy, server.open], [0, 0]);
    });
  }
}

/** Asserts that the newest request has one correct entry, that no money is held, and that the key's one slot is free. */
async function assertSettled(
  { gateway, store, key }: TestGateway,
  { seen, rehearsal, count }: { seen: Seen; rehearsal: Rehearsal; count: number },
): Promise<void> {
  await gateway.backgroundTasks.done();
  await gateway.ledger.flush();
  const entries = await entriesOf(store.ledger, count);
  assertEquals(entries.length, count);
  const entry = entries.at(-1);
  assert(entry !== undefined);
  assertEquals(entry.cost > 0n, seen === "answer", `${entry.cost}`);
  if (seen === "answer") assertEquals(entry.source, rehearsal.counted === true ? "counted" : "upstream");
  assertEquals(await store.ledger.holds(), []);
  const claim = { name: `key:${key.id}`, unit: "concurrency" as const, limit: 1, cost: 1, reportOnly: false };
  const [status] = await gateway.limiter.statuses([claim]);
  assertEquals(status?.remaining, 1);
}

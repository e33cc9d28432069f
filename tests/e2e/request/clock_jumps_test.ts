/** Tests with a wall clock that is set while requests run: only days, dates and expiries depend on it. */
import { assert, assertEquals } from "@std/assert";
import { issueKey } from "../../../lib/access/keys.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { model, startGateway, type TestKey } from "../../support/gateway.ts";
import { prompt } from "../../upstream/replies.ts";
import { frames, REPORTED } from "../../upstream/frames.ts";
import { chargeOf, entriesOf, priceOf, startWorld, tokens } from "./world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Noon of some day. */
const NOON = 20_000 * DAY_MS + 12 * HOUR_MS;
const JUMPS: readonly [string, number][] = [
  ["an hour on", HOUR_MS],
  ["an hour back", -HOUR_MS],
  ["a day on", DAY_MS],
  ["a day back", -DAY_MS],
];

for (const [how, jump] of JUMPS) {
  Deno.test(`a clock that jumps ${how} during a stream changes neither hold nor times nor bill`, async () => {
    let at = NOON;
    const going = Promise.withResolvers<void>();
    const { opening, pieces, ending } = frames("chat", ["one ", "two"], "reported");
    await using world = startWorld({
      protocol: "chat",
      way: "relayed",
      says: () => ({ steps: [...opening, ...pieces, going.promise, ...ending] }),
      gateway: { now: () => at },
    });
    const response = await world.gateway.ask("chat", prompt("chat", { stream: true }));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? "";
    at += jump;
    await world.gateway.gateway.ledger.sweep();
    assertEquals((await world.gateway.store.ledger.holds()).length, 1);
    going.resolve();
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) text += read.value;
    assert(text.endsWith("data: [DONE]\n\n"), text);
    const entry = await world.entry();
    assertEquals(chargeOf(entry), {
      status: 200,
      ending: "end",
      tokens: tokens(REPORTED),
      source: "upstream",
      cost: priceOf(tokens(REPORTED)),
      attempts: 1,
    });
    const { totalMs, firstMs = -1 } = entry;
    assert(entry.at === NOON && firstMs >= 0 && firstMs <= totalMs && totalMs < 30_000, `${firstMs} ${totalMs}`);
    await world.assertSettled(entry, how);
  });
}

/** A gateway whose clock the test sets, with a priced model inside. */
function startClocked(group: JsonObject) {
  const clock = { at: NOON };
  const gateway = startGateway({
    models: [
      model("acme/echo", [{ upstream: "embedded", model: "echo" }], {
        pricing: { prompt: "0.000001", completion: "0.000001" },
      }),
    ],
    groups: { default: group },
  }, { now: () => clock.at });
  const body = { model: "acme/echo", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
  async function ask(key?: TestKey): Promise<{ status: number; created: number; retryAfter: number }> {
    const response = await gateway.ask("chat", body, key === undefined ? {} : { key });
    const { created = -1 } = await response.json();
    return { status: response.status, created, retryAfter: Number(response.headers.get("retry-after") ?? 0) };
  }
  return { clock, gateway, ask };
}

Deno.test("limits use monotonic time: a jump of the clock neither admits more nor blocks longer", async () => {
  const { clock, gateway, ask } = startClocked({ key_limits: { requests_per_minute: 2 } });
  await using _ = gateway;
  assertEquals([(await ask()).status, (await ask()).status], [200, 200]);
  for (const [how, jump] of JUMPS) {
    clock.at += jump;
    const { status, retryAfter } = await ask();
    assert(status === 429 && retryAfter >= 1 && retryAfter <= 61, `${how}: ${status} ${retryAfter}`);
  }
});

Deno.test("a daily budget follows the clock's date, and spending on a later date counts", async () => {
  const { clock, gateway, ask } = startClocked({ key_budget: { usd: "0.001", period: "day" } });
  await using _ = gateway;
  async function spend(): Promise<number> {
    for (let count = 0; count < 100; count++) {
      if ((await ask()).status === 429) return count;
    }
    throw new Error("The budget is never spent");
  }
  const paid = await spend();
  assert(paid > 1);
  clock.at += HOUR_MS;
  assertEquals(await spend(), 0);
  clock.at += DAY_MS;
  assertEquals(await spend(), paid);
  // The clock is set back: the budgets of both days are spent.
  clock.at -= DAY_MS;
  assertEquals(await spend(), 0);
  clock.at += DAY_MS;
  assertEquals(await spend(), 0);

  await gateway.gateway.ledger.flush();
  const { ledger } = gateway.store;
  const entries = await entriesOf(ledger, 2 * paid + 5);
  const days = await ledger.usage({ by: "day", since: 0, until: NOON + 3 * DAY_MS });
  assertEquals(days.map(({ cost }) => cost), [days[0]?.cost, days[0]?.cost]);
  assertEquals(days.reduce((sum, { cost }) => sum + cost, 0n), entries.reduce((sum, { cost }) => sum + cost, 0n));
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
  const { ok, differences } = await auditLedger(ledger, { now: () => clock.at });
  assertEquals([ok, differences], [true, []]);
});

Deno.test("a key expires by the clock, and works again if that is set back; answers are dated by it", async () => {
  const { clock, gateway, ask } = startClocked({});
  await using _ = gateway;
  const { key, record } = issueKey({ name: "short", group: "default", now: NOON, expiresAt: NOON + HOUR_MS / 2 });
  await gateway.store.keys.add(record);
  const seen: [number, boolean][] = [];
  for (const jump of [0, HOUR_MS, -HOUR_MS, -DAY_MS]) {
    clock.at += jump;
    const { status, created } = await ask({ id: record.id, key });
    seen.push([status, created === (status === 200 ? Math.floor(clock.at / 1000) : -1)]);
  }
  assertEquals(seen, [[200, true], [401, true], [200, true], [200, true]]);
});

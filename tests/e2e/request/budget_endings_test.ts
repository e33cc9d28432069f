import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import type { Store } from "../../../lib/store/store.ts";
import type { TestGateway, TestKey } from "../../support/gateway.ts";
import { limitedTo, PROTOCOLS } from "../../upstream/replies.ts";
import { inFolder } from "../../store/in_folder.ts";
import { rounds } from "../../support/skip.ts";
import { answer, asking, COST, leftOf, startBudgeted, worth } from "./budgeted.ts";
import { usd } from "./bills.ts";
import { frames } from "../../upstream/frames.ts";
import type { ScriptedAnswer, UpstreamRequest } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";

/** Concurrent clients, and what their budget pays for. */
const CLIENTS = 64;
const PAID = 100;
const BUDGET = BigInt(PAID) * COST;
const ROUNDS = rounds(10);

function openStore(folder: string): Store {
  return openSqliteStore(`${folder}/sluice.db`, { own: true });
}

/** Clients that ask one request after another until one is refused. Gives how many were answered. */
async function race(
  gateway: TestGateway,
  keys: readonly TestKey[],
): Promise<number[]> {
  const answered = keys.map(() => 0);
  await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
    const protocol = PROTOCOLS[client % PROTOCOLS.length] ?? "chat";
    const index = client % keys.length;
    const key = keys[index];
    for (let status = 200; status === 200;) {
      const more = key === undefined ? {} : { key };
      const response = await gateway.ask(protocol, asking(protocol, { stream: client % 4 < 2 }), more);
      await response.text();
      status = response.status;
      if (status === 200) answered[index] = (answered[index] ?? 0) + 1;
      else assertEquals(status, 429);
    }
  }));
  return answered;
}

/** Cost of a key's requests in the ledger. */
async function costOf(gateway: TestGateway, keyId: string): Promise<bigint> {
  await gateway.gateway.backgroundTasks.done();
  await gateway.gateway.ledger.flush();
  const entries = await gateway.store.ledger.entries({ after: 0, limit: 100_000 });
  return entries.filter((entry) => entry.keyId === keyId).reduce((sum, { cost }) => sum + cost, 0n);
}

Deno.test(`of ${CLIENTS} concurrent requests exactly as many as can be held reach the upstream`, async () => {
  await inFolder(async (folder) => {
    let gate = Promise.withResolvers<void>();
    const says = (requested: UpstreamRequest): ScriptedAnswer => ({
      ...answer("chat")(requested),
      before: gate.promise,
    });
    await using budgeted = startBudgeted({ store: openStore(folder), says });
    const { gateway, upstream } = budgeted;
    for (let round = 1; round <= ROUNDS; round++) {
      gate = Promise.withResolvers();
      const key = await gateway.addKey(worth(20n * COST));
      const requested = Promise.all(Array.from({ length: CLIENTS }, async (_, index) => {
        const protocol = PROTOCOLS[index % PROTOCOLS.length] ?? "chat";
        const response = await gateway.ask(protocol, asking(protocol), { key });
        await response.text();
        return response.status;
      }));
      const refused = await entriesOf(gateway.store.ledger, CLIENTS * (round - 1) + CLIENTS - 20);
      assertEquals(refused.slice(-44).every(({ ending, held }) => ending === "refused" && held === 0n), true);
      assertEquals((await gateway.store.ledger.holds()).map(({ amount }) => amount), Array(20).fill(COST));
      gate.resolve();
      assertEquals((await requested).filter((status) => status === 200).length, 20);
      assertEquals([upstream.requests.length, await costOf(gateway, key.id)], [20 * round, 20n * COST]);
    }
  });
});

Deno.test(`requests that end in every way never exceed a budget, and leave its rest to others`, async () => {
  await inFolder(async (folder) => {
    await using budgeted = startBudgeted({ store: openStore(folder), says: mixed() });
    const { gateway } = budgeted;
    for (let round = 1; round <= ROUNDS; round++) {
      const key = await gateway.addKey(worth(BUDGET));
      const left = () => leftOf(gateway, { id: key.id, budget: BUDGET });
      await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
        const protocol = PROTOCOLS[client % PROTOCOLS.length] ?? "chat";
        for (let times = 0; times < 4; times++) {
          const leave = new AbortController();
          // Most of the hold is released: the answer is shorter.
          const body = asking(protocol, { ...limitedTo(protocol, 40), stream: true });
          const response = await gateway.ask(protocol, body, { key, signal: leave.signal });
          if (client % 8 === 7) {
            await response.body?.getReader().read();
            leave.abort();
          } else await response.text();
          assert(await left() >= 0n);
        }
      }));
      const cost = await costOf(gateway, key.id);
      assert(cost > 0n && cost < BUDGET, `${cost}`);
      assertEquals([await gateway.store.ledger.holds(), await left()], [[], BUDGET - cost]);
    }
  });
});

Deno.test(`budgets of key and group both apply, and a refusal by one holds nothing in the other`, async () => {
  await inFolder(async (folder) => {
    for (let round = 1; round <= ROUNDS; round++) {
      const groups = { two: { budget: { usd: usd(3n * BUDGET / 2n), period: "total" } } };
      await using budgeted = startBudgeted({ store: openStore(`${folder}/${round}`), groups });
      const { gateway } = budgeted;
      const [one, two, unlimited] = await Promise.all([
        gateway.addKey({ group: "two", ...worth(BUDGET) }),
        gateway.addKey({ group: "two", ...worth(BUDGET) }),
        gateway.addKey({ group: "two" }),
      ]);
      const [first = 0, second = 0] = await race(gateway, [one, two]);
      // Together all of the group's; of each key's own no more than there is.
      assertEquals(first + second, PAID * 3 / 2);
      assert(first <= PAID && second <= PAID, `${first} and ${second}`);
      for (const [key, paid] of [[one, first], [two, second]] as const) {
        assertEquals(await leftOf(gateway, { id: key.id, budget: BUDGET }), BigInt(PAID - paid) * COST);
      }
      const ofGroup = { scope: "group", id: "two", budget: 3n * BUDGET / 2n } as const;
      assertEquals([await leftOf(gateway, ofGroup), await gateway.store.ledger.holds()], [0n, []]);
      const refusal = await gateway.ask("chat", asking("chat"), { key: unlimited });
      assertMatch((await refusal.json()).error.message, /of the budget of group "two" \(0\.0075 USD in all\)\. It/);
      assertEquals(refusal.status, 429);
    }
  });
});

/** All kinds of answers, in turn. */
function mixed(): (request: UpstreamRequest) => ScriptedAnswer {
  let count = 0;
  const { opening, pieces, ending } = frames("chat", ["Hello ", "there"], "reported");
  const ways: ScriptedAnswer[] = [
    { steps: [...opening, ...pieces, ...ending] },
    { status: 500, steps: ["{}"] },
    { steps: [...opening, ...pieces, ...ending] },
    { steps: [...opening, ...pieces] },
    { steps: [...opening, ...pieces, ...ending] },
    { steps: opening },
    { steps: [...opening, ...pieces, ...ending] },
  ];
  return () => ways[count++ % ways.length] ?? { steps: [] };
}

Deno.test("a refusal by a budget releases the limits", async () => {
  const limits = { requests_per_minute: 1, tokens_per_minute: 1_000, concurrency: 1 };
  await using budgeted = startBudgeted({ groups: { limited: { limits, key_limits: limits } }, row: { limits } });
  const { gateway } = budgeted;
  const key = await gateway.addKey({ group: "limited", ...worth(COST) });
  for (let times = 0; times < 3; times++) {
    const response = await gateway.ask("messages", asking("messages", { max_tokens: 100 }), { key });
    assertMatch(await response.text(), /Cannot pay/);
    const left = ["requests", "tokens"].map((unit) => response.headers.get(`anthropic-ratelimit-${unit}-remaining`));
    assertEquals([response.status, ...left], [429, "1", "1000"]);
  }
  const paid = await gateway.ask("messages", asking("messages"), { key });
  await paid.text();
  assertEquals(paid.status, 200);
});

/** Endings without a charge. */
const FREE_ENDINGS: readonly [name: string, says: ScriptedAnswer, more?: JsonObject][] = [
  ["an upstream that breaks", { status: 500, steps: ["{}"] }],
  ["an upstream that is busy", { status: 503, steps: ["{}"] }],
  ["an upstream that refuses", { status: 400, steps: ['{"error":{"message":"No","type":"invalid_request_error"}}'] }],
  ["an upstream that has no money", { status: 429, steps: ['{"error":{"code":"insufficient_quota"}}'] }],
  ["no answer at all", { steps: [] }],
  ["an answer that is none", { steps: ["<html>"] }],
  ["an answer that is cut", { steps: ['{"id":'], cut: true }],
  ["an empty stream", { steps: [] }, { stream: true }],
  ["a stream that is cut", { steps: frames("chat", ["Hello "], "reported").opening, cut: true }, { stream: true }],
  ["a stream without an end", { steps: frames("chat", ["Hello "], "reported").pieces }, { stream: true }],
  ["an error in a stream", { steps: ['data: {"error":{"message":"No"}}\n\n'] }, { stream: true }],
];

Deno.test("the released hold of a free request pays for the next one", async () => {
  let script: ScriptedAnswer = { steps: [] };
  await using budgeted = startBudgeted({ says: () => script, row: { on_disconnect: "cancel" } });
  const { gateway } = budgeted;
  for (const protocol of PROTOCOLS) {
    // The budget covers exactly one request: an amount that is not released fails the next one.
    const key = await gateway.addKey(worth(COST));
    const entryOf = async (response: Response): Promise<KeptEntry | undefined> => {
      await response.text();
      await gateway.gateway.backgroundTasks.done();
      await gateway.gateway.ledger.flush();
      return await gateway.store.ledger.find(response.headers.get("x-request-id")?.replace("req_", "") ?? "");
    };
    for (const [name, says, more] of FREE_ENDINGS) {
      script = says;
      const entry = await entryOf(await gateway.ask(protocol, asking(protocol, more), { key }));
      assertEquals([entry?.ending, entry?.cost, entry?.held], ["failed", 0n, COST], `${protocol}: ${name}`);
    }
    const leave = new AbortController();
    const before = budgeted.upstream.requests.length;
    script = { steps: [], before: new Promise(() => {}) };
    const left = gateway.ask(protocol, asking(protocol), { key, signal: leave.signal }).catch(() => {});
    await budgeted.upstream.until(before + 1);
    leave.abort();
    await left;
    await budgeted.upstream.requests[before]?.gone;
    await gateway.gateway.backgroundTasks.done();
    await gateway.gateway.ledger.flush();
    script = answer("chat")({ stream: false } as UpstreamRequest);
    const entry = await entryOf(await gateway.ask(protocol, asking(protocol), { key }));
    assertEquals([entry?.status, entry?.cost, entry?.held], [200, COST, COST], protocol);
    assertEquals(await leftOf(gateway, { id: key.id, budget: COST }), 0n);
  }
});

Deno.test("usage beyond the request's maximum is not charged to the customer", async () => {
  await using budgeted = startBudgeted();
  const { gateway } = budgeted;
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      const held = COST * 3n / 5n;
      const key = await gateway.addKey(worth(held));
      const response = await gateway.ask(protocol, asking(protocol, { ...limitedTo(protocol, 3), stream }), { key });
      assertEquals(response.status, 200);
      await response.text();
      const entry = await gateway.store.ledger.find(response.headers.get("x-request-id")?.replace("req_", "") ?? "");
      assertEquals([entry?.cost, entry?.held, entry?.overrun], [held, held, COST - held]);
      if (!stream) assertEquals(response.headers.get("x-sluice-cost"), usd(held));
      assertEquals(await leftOf(gateway, { id: key.id, budget: held }), 0n);
    }
  }
});

Deno.test("a key's own budget replaces the group's budget for every key", async () => {
  const groups = { small: { key_budget: { usd: usd(COST), period: "total" } } };
  await using budgeted = startBudgeted({ groups });
  const { gateway } = budgeted;
  for (const [own, most] of [[undefined, 5], [3n * COST, 15], [COST / 5n, 1]] as const) {
    const key = await gateway.addKey({ group: "small", ...(own !== undefined && worth(own)) });
    for (const [tokens, status] of [[most + 1, 429], [most, 200]] as const) {
      const response = await gateway.ask("chat", asking("chat", limitedTo("chat", tokens)), { key });
      assertEquals(response.status, status, await response.text());
    }
  }
});

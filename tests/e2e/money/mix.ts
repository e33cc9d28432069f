/** Clients of all kinds that record the bills they saw, and a comparison with the ledger. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { parseUsd } from "../../../lib/billing/money.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import type { Store } from "../../../lib/store/store.ts";
import { checkReports } from "../../billing/simulator/reports_checker.ts";
import { assertSameBill, type Bill, streamedBill, usd, wholeBill } from "../request/bills.ts";
import { type Random, seeded } from "../../support/random.ts";
import { prompt, PROTOCOLS, SUCCESS } from "../../upstream/replies.ts";
import { costAt, FATES, IMAGE_TOKENS, openShop, POOR_USD, type Shop, SLOTS, TEXT_MODELS } from "./shop.ts";

/** Concurrent clients. */
const CLIENTS = 16;

/** One request, as its client knows it. */
interface Tried {
  number: number;
  id?: string;
  status?: number;
  /** The reported bill, if the client read the whole answer. */
  bill?: Bill;
  protocol?: Protocol;
  /** The `Idempotency-Key` that it shares with others. */
  shared?: string;
  paid?: string;
  /** The client disconnected during its answer: how much it received is unknown. */
  left?: boolean;
}

/** Counts of a mix; `cost` is the total in USD. */
export type Mixed = Readonly<Record<"requests" | "complete", number>> & {
  readonly endings: Readonly<Record<string, number>>;
  readonly cost: string;
  /** Number of entries by the threshold of their context tier. */
  readonly tiers: Readonly<Record<string, number>>;
};

/** Sends requests through a whole gateway with a store, and compares its ledger with the clients' view. */
export async function mix(store: Store, { requests, random }: { requests: number; random: Random }): Promise<Mixed> {
  await using shop = await openShop(store);
  const tried: Tried[] = [];
  // Each request has its own random numbers, so the same seed makes the same requests in any order of events.
  const all = Array.from({ length: requests }, () => seeded(random.below(2 ** 32))).entries();
  const client = async () => {
    for (const [number, own] of all) {
      const ways = { shop, random: own };
      tried.push(...await (own.chance(0.15) ? paint(number, ways) : write(number, ways)));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const { gateway } = shop.gateway;
  await gateway.inFlight.whenDone();
  await gateway.backgroundTasks.done();
  await gateway.ledger.flush();
  return await compare(tried, { shop, random });
}

interface Ways {
  shop: Shop;
  random: Random;
}

/** A text: in any protocol, streamed or not, of any model or one after the other. */
async function write(number: number, { shop, random }: Ways): Promise<Tried[]> {
  const protocol = random.pick(PROTOCOLS);
  const one: Tried = { number, protocol };
  const stream = random.chance(0.6);
  const fate = random.pick(FATES);
  const requested = shop.decide(number, fate);
  const [first, next] = [random.pick(TEXT_MODELS), random.pick(TEXT_MODELS)];
  const others = random.chance(0.4) && next !== first
    ? protocol === "messages" ? { fallbacks: [{ model: next }] } : { models: [next] }
    : {};
  const text = `Number ${number} of many`;
  const body = prompt(protocol, {
    model: first,
    stream,
    ...textOf(protocol, text),
    ...(protocol === "chat" && stream && { stream_options: { include_usage: true } }),
    ...(random.chance(0.5) && tokenBound(protocol, 100)),
    ...others,
  });
  const leave = new AbortController();
  const pending = shop.gateway.ask(protocol, body, {
    signal: leave.signal,
    ...(random.chance(0.15) && { key: shop.poor }),
  });
  if (fate === "leave early") {
    // Rejected before an upstream is called, or in progress for a long time.
    const over = pending.then((response) => response.bytes()).catch(() => {});
    await Promise.race([requested, over]);
    leave.abort();
    await over;
    return [one];
  }
  const response = await pending;
  one.id = idOf(response);
  one.status = response.status;
  if (fate === "leave" && stream) {
    const reader = response.body?.getReader();
    for (let pieces = random.below(4); pieces >= 0; pieces--) await reader?.read().catch(() => {});
    leave.abort();
    await reader?.cancel().catch(() => {});
    return [{ ...one, left: true }];
  }
  const received = await response.text().catch(() => "");
  if (response.status !== 200) return [one];
  if (!stream) one.bill = wholeBill(protocol, response, received);
  else if (received.includes(SUCCESS[protocol]) && fate !== "cut") one.bill = streamedBill(protocol, received);
  return [one];
}

/** The members with the text. */
function textOf(protocol: Protocol, text: string): JsonObject {
  if (protocol === "responses") return { input: text };
  if (protocol === "gemini") return { contents: [{ role: "user", parts: [{ text }] }] };
  return { messages: [{ role: "user", content: text }] };
}

function tokenBound(protocol: Protocol, most: number): JsonObject {
  if (protocol === "gemini") return { generationConfig: { maxOutputTokens: most } };
  return { [protocol === "responses" ? "max_output_tokens" : "max_tokens"]: most };
}

/** Images, some with an idempotency key that concurrent and later requests use, too. */
async function paint(number: number, { shop, random }: Ways): Promise<Tried[]> {
  void shop.decide(number, random.pick(["reported", "cut", "fails"]));
  const body = JSON.stringify({
    model: "acme/paint",
    prompt: `Number ${number} of many`,
    n: 1 + random.below(2),
    size: "1024x1024",
    quality: "low",
  });
  const shared = random.chance(0.4) ? `shared-${number}` : undefined;
  const ask = async (): Promise<Tried> => {
    const response = await fetch(`${shop.gateway.url}/v1/images/generations`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${shop.gateway.key.key}`,
        ...(shared !== undefined && { "idempotency-key": shared }),
      },
      body,
    });
    await response.bytes();
    return {
      number,
      id: idOf(response),
      status: response.status,
      paid: response.headers.get("x-sluice-cost") ?? "",
      ...(shared !== undefined && { shared }),
    };
  };
  const together = await Promise.all(Array.from({ length: shared === undefined ? 1 : 1 + random.below(2) }, ask));
  return shared === undefined ? together : [...together, await ask()];
}

function idOf({ headers }: Response): string {
  return headers.get("x-request-id")?.replace("req_", "") ?? "";
}

async function compare(tried: readonly Tried[], { shop, random }: Ways): Promise<Mixed> {
  const { store: { ledger }, gateway: { limiter } } = shop.gateway;
  const entries = await allEntries(ledger);
  assertEquals(entries.length, tried.length, "each request is entered once");
  const seen = assertSeen(tried, new Map(entries.map((entry) => [entry.id, entry])));
  const endings: Record<string, number> = {};
  const tiers: Record<string, number> = {};
  let cost = 0n;
  let unseen = 0n;
  const known = new Map(tried.flatMap((one) => one.id === undefined ? [] : [[one.id, one]]));
  for (const entry of entries) {
    endings[entry.ending] = (endings[entry.ending] ?? 0) + 1;
    const tier = entry.details?.context_tier;
    if (tier !== undefined) tiers[tier.above] = (tiers[tier.above] ?? 0) + 1;
    cost += entry.cost;
    assertReckoned(entry);
    if (!seen.ids.has(entry.id)) unseen += entry.cost;
    // An answer that no client read to its end costs nothing, except for what was sent before the disconnect.
    const one = known.get(entry.id);
    const isLeft = one === undefined || one.left === true;
    assert(seen.ids.has(entry.id) || entry.cost === 0n || isLeft, `${entry.id} ended as ${entry.ending}, unseen`);
  }
  assertEquals(seen.cost + unseen, cost);
  await checkReports(ledger, { entries, clock: { now: Date.now }, random });
  assertEquals(await ledger.holds(), []);
  const spent = entries.filter(({ group }) => group === "poor").reduce((sum, entry) => sum + entry.cost, 0n);
  assert(spent > 0n && spent <= parseUsd(POOR_USD), `${usd(spent)} of ${POOR_USD}`);
  const claim = { name: "group:default", unit: "concurrency" as const, limit: SLOTS, cost: 1, reportOnly: false };
  assertEquals((await limiter.statuses([claim]))[0]?.remaining, SLOTS);
  return { requests: tried.length, complete: seen.ids.size, endings, tiers, cost: usd(cost) };
}

/** Asserts that reported bills match the entries. Returns the ids of completely read requests, and their cost. */
function assertSeen(
  tried: readonly Tried[],
  byId: ReadonlyMap<string, KeptEntry>,
): { ids: Set<string>; cost: bigint } {
  const ids = new Set<string>();
  const paid = new Map<string, number>();
  let cost = 0n;
  for (const one of tried) {
    if (one.id === undefined) continue;
    const entry = byId.get(one.id);
    assert(entry !== undefined, `req_${one.id} is not in the ledger`);
    assertEquals(entry.status, one.status, one.id);
    if (one.bill !== undefined && one.protocol !== undefined) {
      assertSameBill(one.bill, entry, `${one.protocol} req_${one.id}`);
    } else if (one.paid !== undefined) assertEquals(one.paid, usd(entry.cost), one.id);
    else continue;
    ids.add(one.id);
    cost += entry.cost;
    if (one.shared !== undefined && entry.cost > 0n) paid.set(one.shared, (paid.get(one.shared) ?? 0) + 1);
  }
  for (const [name, times] of paid) assertEquals(times, 1, `${name} was paid ${times} times`);
  return { ids, cost };
}

/** The charge is that of the entry's tokens, by prices worked out by hand; what failed is free. */
function assertReckoned({ id, model, tokens, cost, overrun, ending, sheet, images }: KeptEntry): void {
  if (model === "acme/paint") assertEquals(tokens.completion, images * IMAGE_TOKENS, id);
  if (sheet === undefined) {
    assert(["failed", "refused"].includes(ending), `${id} ended as ${ending} without prices`);
    assertEquals([cost, overrun], [0n, 0n], id);
  } else assertEquals(cost + overrun, costAt(model, tokens), id);
}

async function allEntries(ledger: Store["ledger"]): Promise<KeptEntry[]> {
  const all: KeptEntry[] = [];
  for (;;) {
    const page = await ledger.entries({ after: all.length, limit: 500 });
    all.push(...page);
    if (page.length < 500) return all;
  }
}

import { assert, assertEquals } from "@std/assert";
import { auditSchema } from "../../../lib/billing/reports/schemas.ts";
import { ConfigStoreError, createReloader } from "../../../lib/config/reloader.ts";
import type { LoadedConfig } from "../../../lib/config/load.ts";
import { parseConfig } from "../../../lib/config/parse.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import type { TargetOutcome } from "../../../lib/routing/health.ts";
import { HealthTracker } from "../../../lib/routing/health_tracker.ts";
import type { Ending, Entry, KeptEntry, LedgerStore, UsageSource } from "../../../lib/store/ledger.ts";
import { dayOf } from "../../../lib/store/days.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { Store, StoreReach } from "../../../lib/store/store.ts";
import { DAY_MS, DAY_ONE, entryOf, freeEntryOf, SHEET, tokensOf } from "../../billing/reports/entries.ts";
import { BREAKER } from "../../routing/breaker.ts";
import { ADMIN_KEY, KEY_STATES, startKeyed } from "../../support/keyed_gateway.ts";
import { APART } from "../../admin/admin_client.ts";
import { askDescribed, OPERATIONS } from "../../admin/openapi_validator.ts";

/** All values of the type; each is looked for by its name. */
const ENDINGS = Object.keys(
  {
    ...{ end: 0, stop_sequence: 0, length: 0, tool_use: 0, refusal: 0, pause: 0, done: 0, partial: 0 },
    ...{ client_disconnected: 0, failed: 0, refused: 0, lost: 0 },
  } satisfies Record<Ending, 0>,
) as Ending[];
const SOURCES = Object.keys(
  { upstream: 0, counted: 0, estimated: 0, formula: 0, none: 0 } satisfies Record<UsageSource, 0>,
);

/** A store whose ledger returns changed entries. */
function withLedger(store: Store, change: (ledger: LedgerStore) => Partial<LedgerStore>): Store {
  return { ...store, ledger: { ...store.ledger, ...change(store.ledger) } };
}

/** One entry of each kind, on consecutive days. */
function everyEntry(): Entry[] {
  const free: readonly Ending[] = ["failed", "refused", "lost"];
  return [
    ...ENDINGS.map((ending) => (free.includes(ending) ? freeEntryOf : entryOf)({ id: ending, ending })),
    ...SOURCES.map((source) => entryOf({ id: source, source: source as UsageSource })),
    freeEntryOf({ id: "nowhere", ending: "refused", model: "", upstream: "", attempts: 0, status: 429 }),
    freeEntryOf({ id: "left", ending: "failed", status: 499, attempts: 2 }),
    entryOf({ id: "images", endpoint: "images.edits", images: 3, at: DAY_ONE + DAY_MS, source: "formula" }),
    entryOf({ id: "overrun", held: 5n, at: DAY_ONE + 2 * DAY_MS, upstream: "gone" }),
    entryOf({
      id: "cached",
      at: DAY_ONE + 2 * DAY_MS,
      tokens: tokensOf({ input_cache_write_5m: 3, input_cache_write_1h: 4, completion: 2, reasoning: 2 }),
    }),
    entryOf({ id: "dear", sheet: { ...SHEET, completion: "1234.12345678901" }, at: DAY_ONE + 3 * DAY_MS - 1 }),
  ];
}

Deno.test("admin answers about keys in every state match their description", async () => {
  await using gateway = startKeyed(APART);
  const rules: Json = {
    models: ["*"],
    endpoints: ["chat"],
    ips: ["192.0.2.0/24", "2001:db8::1"],
    limits: { requests_per_minute: 1, tokens_per_minute: 2, concurrency: 3 },
    budget: { usd: "0.000000000001", period: "month" },
  };
  const wishes: [name: string, expires_at: string | null][] = [
    ["unbounded", null],
    ["century", "36525d"],
    ["last", "9999-12-31T23:59:59Z"],
  ];
  for (const [name, expires_at] of wishes) {
    await askDescribed(gateway, "POST /keys", { status: 201, body: { name, rules, expires_at } });
  }
  // In UTC this is in the year 10000, which no date can have.
  for (const expires_at of ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "36526d"]) {
    await askDescribed(gateway, "POST /keys", { status: 400, body: { name: "beyond", expires_at } });
  }
  await askDescribed(gateway, "POST /keys/good/rotate", { status: 200, body: { overlap: "1h" } });
  const used = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${gateway.keys.good}` },
  });
  await used.body?.cancel();
  await gateway.gateway.keys.flush();
  const seen: JsonObject[] = [];
  for (const name of [...KEY_STATES, ...wishes.map(([name]) => name)]) {
    const { body } = await askDescribed(gateway, `GET /keys/${name}`, { status: 200 });
    seen.push(body);
    const { body: byId } = await askDescribed(gateway, `GET /keys/${body.id}`, { status: 200 });
    assertEquals(byId, body);
  }
  const { body: { data } } = await askDescribed(gateway, "GET /keys", { status: 200 });
  assertEquals((data as JsonObject[]).length, seen.length);
  assertEquals(new Set(seen.map(({ state }) => state)), new Set(["active", "disabled", "expired", "revoked"]));
  for (const member of ["expires_at", "last_used_at", "revoked_at", "former_until"]) {
    const values = new Set(seen.map((key) => typeof key[member]));
    assertEquals(values, new Set(["string", "object"]), member);
  }
  for (
    const [what, body] of [["PATCH /keys/revoked", { disabled: true }], ["POST /keys/expired/rotate", {}]] as const
  ) {
    await askDescribed(gateway, what, { status: 400, body });
  }
  await askDescribed(gateway, "PATCH /keys/expired", { status: 200, body: { expires_at: null, rules: {} } });
});

Deno.test("admin answers about bills and requests match their description, even for an empty ledger", async () => {
  const store = openMemoryStore();
  const forged = (entry: KeptEntry | undefined) => entry?.id === "end" ? { ...entry, cost: entry.cost + 1n } : entry;
  await using gateway = startKeyed(APART, {
    store: withLedger(store, (ledger) => ({ find: async (id) => forged(await ledger.find(id)) })),
  });
  const sums = ["key", "group", "model", "day", "upstream"].flatMap((by) =>
    ["", "&since=2026-11-20T12:00:00Z&until=2026-11-22T12:00:00Z", "&since=0000-01-01&until=9999-12-31T23:59Z"].map((
      span,
    ) => `GET /usage?by=${by}${span === "" ? "&since=2026-11-20&until=2026-11-24" : span}`)
  );
  const lines = async () => {
    const counts: number[] = [];
    for (const what of sums) {
      counts.push(((await askDescribed(gateway, what, { status: 200 })).body.lines as Json[]).length);
    }
    return counts;
  };
  assertEquals(new Set(await lines()), new Set([0]));
  const { body: empty } = await askDescribed(gateway, "POST /audit", { status: 200 });
  assertEquals([empty.ok, (empty.checked as JsonObject).first_seq], [true, null]);

  const entries = everyEntry();
  await store.ledger.append(entries);
  await store.ledger.hold({
    id: "running",
    at: DAY_ONE,
    keyId: "key_1",
    group: "default",
    model: "acme/one",
    endpoint: "chat",
    amount: 7n,
    claims: [],
    leaseUntil: Date.now() + 60_000,
  });
  assert((await lines()).every((count) => count > 0));
  const explanations: JsonObject[] = [];
  for (const id of [...entries.map(({ id }) => id), "running"]) {
    explanations.push((await askDescribed(gateway, `GET /usage/${id}`, { status: 200 })).body);
  }
  assertEquals(new Set(explanations.map(({ state }) => state)), new Set(["ended", "running"]));
  assertEquals(explanations.filter(({ adds_up }) => adds_up === false).map(({ id }) => id), ["req_end"]);
  assertEquals((await askDescribed(gateway, "POST /audit", { status: 200 })).body.ok, true);

  while (await store.ledger.prune(dayOf(DAY_ONE) + 1, Infinity));
  for (const what of sums) await askDescribed(gateway, what, { status: what.includes("upstream") ? 400 : 200 });
  const { body: pruned } = await askDescribed(gateway, "POST /audit", { status: 200 });
  assert(pruned.ok === true && Number((pruned.checked as JsonObject).day_sums_alone) > 0);
});

Deno.test("admin answers about failed audits and unreadable ledgers match their description", async () => {
  // Each gateway closes its store.
  const store = { ...openMemoryStore(), close: () => Promise.resolve() };
  await store.ledger.append(Array.from({ length: 300 }, (_, index) => entryOf({ id: `r${index}` })));
  await store.ledger.hold({
    ...{ id: "h", at: DAY_ONE, keyId: "key_1", group: "default", model: "acme/one", endpoint: "chat" as const },
    ...{ amount: 1n, claims: [], leaseUntil: 1 },
  });
  const fail = () => Promise.reject(new Error("torn page"));
  const entries: (change: (entry: KeptEntry) => KeptEntry[]) => (ledger: LedgerStore) => Partial<LedgerStore> =
    (change) => (ledger) => ({ entries: async (from) => (await ledger.entries(from)).flatMap(change) });
  const changes: ((ledger: LedgerStore) => Partial<LedgerStore>)[] = [
    entries((entry) => entry.seq === 7 ? [] : [entry]),
    entries((entry) => entry.seq % 2 === 0 ? [{ ...entry, cost: entry.cost - 1n, images: -1 }] : [entry]),
    entries((entry) => entry.seq === 7 ? [{ ...entry, tokens: { ...entry.tokens, prompt: 1.5 } }] : [entry]),
    (ledger) => ({ days: async (...from) => (await ledger.days(...from)).map((sum) => ({ ...sum, requests: 1 })) }),
    () => ({ userSums: () => Promise.resolve([{ since: DAY_ONE / DAY_MS, keyId: "key_1", user: "u", charged: 1n }]) }),
    () => ({ start: () => Promise.resolve({ seq: -1, check: 0, day: 5 }) }),
    () => ({ entries: fail }),
    () => ({ start: fail, days: fail, holds: fail }),
  ];
  const kinds = new Set<Json | undefined>();
  for (const change of changes) {
    await using gateway = startKeyed(APART, { store: withLedger(store, change) });
    const { body } = await askDescribed(gateway, "POST /audit", { status: 200 });
    assertEquals(body.ok, false);
    for (const { kind } of body.differences as JsonObject[]) kinds.add(kind);
  }
  const damaged = await auditLedger(store.ledger, { damage: ["torn"] });
  assertEquals(auditSchema.safeParse(damaged).error, undefined);
  for (const { kind } of damaged.differences) kinds.add(kind);
  assertEquals([...kinds].sort(), auditSchema.shape.differences.element.shape.kind.options.toSorted());

  await using gateway = startKeyed(APART, {
    store: withLedger(store, () => ({ usage: fail, upstreamDays: fail, entriesWithin: fail, find: fail })),
  });
  for (const what of ["GET /usage", "GET /usage?by=upstream", "GET /usage/r1"]) {
    await askDescribed(gateway, what, { status: 500 });
  }
});

Deno.test("admin answers about health match their description in every state", async () => {
  let now = 1000.25;
  const health = new HealthTracker({
    breaker: BREAKER,
    monotonic: () => now,
    now: () => 1e12 + now,
    random: () => 0.3,
    later: () => () => {},
    probe: (upstream) => upstream === "quarantined" ? Promise.resolve("refused") : undefined,
  });
  const reported: [model: string, outcome: TargetOutcome, times: number][] = [
    ["open", { type: "unreachable" }, 5],
    ["half_open", { type: "unreachable" }, 5],
    ["cooling", { type: "limited", retryAfterMs: 1234.5 }, 1],
    ["quarantined", { type: "refused" }, 1],
    ["closed", { type: "success" }, 3],
  ];
  function report([name, outcome, times]: typeof reported[number]): void {
    const target = { upstream: name, model: name };
    for (let count = 0; count < times; count++) {
      const admission = health.acquirePermit({ model: { id: `acme/${name}`, targets: [target] }, target, key: "k1" });
      if (admission.granted) health.report(admission.permit, outcome);
    }
  }
  reported.filter(([name]) => name === "half_open").forEach(report);
  now += 60_000;
  reported.filter(([name]) => name !== "half_open").forEach(report);
  health.recordSpeed({ upstream: "closed", model: "closed" }, { firstMs: 12.5, tokensPerSecond: 33.3 });

  const store = openMemoryStore();
  let keysAnswer = true;
  let reach: StoreReach | undefined;
  let isWritable = true;
  const keys: Store["keys"] = {
    ...store.keys,
    findByHash: (...of) => keysAnswer ? store.keys.findByHash(...of) : Promise.reject(new Error("away")),
  };
  const ledger = Object.defineProperty({ ...store.ledger }, "isWritable", { get: () => isWritable });
  const shared = {
    configs: undefined as never,
    nodes: undefined as never,
    reach: () => reach ?? { up: true, isReadable: true, downMs: 0, waiting: 0 },
  };
  await using gateway = startKeyed(APART, { store: { ...store, keys, ledger, shared }, health });
  const states: [change: () => void, expected: JsonObject][] = [
    [() => {}, { status: "degraded", upstreams: "some", store: true, ledger: true, journal_entries: 0 }],
    [() => keysAnswer = false, { status: "unavailable", store: false }],
    [() => [keysAnswer, isWritable] = [true, false], { status: "unavailable", ledger: false }],
    [() => [isWritable, reach] = [true, { up: false, isReadable: true, downMs: 10.5, waiting: 7 }], {
      status: "degraded",
      journal_entries: 7,
    }],
    [() => reach = { up: false, isReadable: true, downMs: 1e9, waiting: 7 }, { status: "unavailable", store: false }],
  ];
  for (const [change, expected] of states) {
    change();
    const { body } = await askDescribed(gateway, "GET /health", { status: 200 });
    assertEquals(Object.fromEntries(Object.keys(expected).map((name) => [name, body[name]])), expected);
    const targets = body.targets as JsonObject[];
    assertEquals(targets.map(({ state }) => state).sort(), reported.map(([name]) => name).sort());
  }
});

Deno.test("admin answers about configurations and reloads match their description", async () => {
  const load = (file: JsonObject): LoadedConfig => ({
    config: parseConfig({ ...APART, ...file }, () => ADMIN_KEY),
    path: "sluice.jsonc",
  });
  const first = load({ groups: { poor: { endpoints: [] }, speechless: { protocols: [] } } });
  let next: () => LoadedConfig = () => first;
  let latest = 3;
  const reloader = createReloader({
    first: { ...first, shared: 3 },
    load: () => Promise.resolve().then(() => next()),
    latest: () => latest,
    apply() {},
    now: Date.now,
    log() {},
  });
  await using gateway = startKeyed(APART, { reloader });
  const seen: (JsonObject | undefined)[] = [];
  async function look(status: number): Promise<JsonObject> {
    const { body } = await askDescribed(gateway, "POST /reload", { status });
    seen.push((await askDescribed(gateway, "GET /config", { status: 200 })).body);
    await askDescribed(gateway, "GET /health", { status: 200 });
    return body;
  }
  assertEquals((await look(200)).outcome, "unchanged");
  next = () => ({ ...load({ keep_alive_seconds: 7, store: "memory:" }), shared: 3 });
  assertEquals((await look(200)).outcome, "changed");
  next = () => load({ keep_alive_seconds: "7" });
  await look(400);
  next = () => {
    throw new ConfigStoreError("Cannot reach the store");
  };
  latest = 4;
  await look(503);
  assert(seen.some((body) => body?.last_error !== undefined) && seen.some((body) => body?.last_error === undefined));
  assertEquals(new Set(seen.map((body) => (body?.shared as JsonObject).is_current)), new Set([true, false]));
});

Deno.test("refusals match their description at every operation", async () => {
  await using gateway = startKeyed({ ...APART, trusted_proxies: ["127.0.0.0/8"] });
  const operations = [...OPERATIONS.keys()].map((name) => name.replace("/admin/v1", "").replaceAll(/\[\w+\]/g, "a"));
  const headers = { authorization: "Bearer wrong", "x-forwarded-for": "192.0.2.1" };
  for (const what of operations) await askDescribed(gateway, what, { status: 401, headers });
  for (const what of ["POST /keys", "PATCH /keys/good", "POST /keys/good/rotate"]) {
    for (const [status, body] of [[400, "{"], [413, "x".repeat(70_000)]] as const) {
      await askDescribed(gateway, what, { status, body });
    }
    await askDescribed(gateway, what, { status: 415, body: {}, headers: { "content-encoding": "br" } });
  }
  // An address that has tried too many keys is refused.
  for (let count = operations.length; count < 20; count++) {
    await askDescribed(gateway, "GET /health", { status: 401, headers });
  }
  for (const what of operations) await askDescribed(gateway, what, { status: 429, headers });
});

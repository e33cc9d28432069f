import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { NO_TOKENS } from "../../lib/store/days.ts";
import type { Entry } from "../../lib/store/ledger.ts";
import { type KeyedGateway, startKeyed } from "../support/keyed_gateway.ts";
import { APART, ask, errorOf, startAdmin } from "./admin_client.ts";
import { postChat } from "../support/post_chat.ts";

/** A charged request at a moment. */
function entry(id: string, { at, cost, key = "key_a" }: { at: string; cost: bigint; key?: string }): Entry {
  return {
    id,
    at: Date.parse(at),
    keyId: key,
    group: "default",
    model: "acme/one",
    upstream: "acme",
    endpoint: "chat",
    status: 200,
    ending: "end",
    tokens: { ...NO_TOKENS, prompt: 1 },
    source: "upstream",
    cost,
    held: 0n,
    overrun: 0n,
    totalMs: 5,
    attempts: 1,
    images: 0,
  };
}

const PRICED = {
  id: "acme/priced",
  name: "Priced",
  targets: [{ upstream: "embedded", model: "echo" }],
  pricing: { prompt: "0.00000125", completion: "0.00001" },
  created: 1,
  context_length: 100_000,
};

async function chat({ url, keys }: KeyedGateway, model: string): Promise<{ id: string; usage: JsonObject }> {
  const response = await postChat(url, keys.good, { model, messages: [{ role: "user", content: "Hello there" }] });
  const { usage } = await response.json();
  assertEquals(response.status, 200);
  return { id: response.headers.get("x-request-id") ?? "", usage };
}

Deno.test("the admin's sums and lines equal the usage reported to clients", async () => {
  await using gateway = startKeyed({ ...APART, models: [PRICED] });
  const { id, usage } = await chat(gateway, "acme/priced");
  const [prompt, completion] = [Number(usage.prompt_tokens), Number(usage.completion_tokens)];
  assert(prompt > 0 && completion > 0);
  const cost = `0.${String(prompt * 1_250_000 + completion * 10_000_000).padStart(12, "0").replace(/0+$/, "")}`;

  const sums = (await ask(gateway, "GET /usage?since=1h")).body;
  const [line] = sums.lines as JsonObject[];
  assertEquals([line?.name, line?.requests, line?.cost_usd], ["good", 1, cost]);
  assertEquals((sums.total as JsonObject).cost_usd, cost);
  for (const wanted of [id, id.replace("req_", "")]) {
    const { status, headers, body } = await ask(gateway, `GET /usage/${wanted}`);
    assertEquals([status, body.id, body.charged_usd, body.model, body.adds_up], [200, id, cost, "acme/priced", true]);
    assertEquals((body.lines as JsonObject[]).map(({ tokens }) => tokens), [prompt, completion]);
    assertEquals(headers.get("cache-control"), "no-store");
  }
});

Deno.test("sums cover exactly the requested period and grouping", async () => {
  await using gateway = startAdmin();
  await gateway.store.ledger.append([
    entry("a", { at: "2026-03-01T00:00:00Z", cost: 1n }),
    entry("b", { at: "2026-03-01T23:59:59.999Z", cost: 1_234_567_890_123_456_789n, key: "key_b" }),
    entry("c", { at: "2026-03-02T00:00:00Z", cost: 10n }),
  ]);
  const cases: [query: string, names: string[], total: string][] = [
    ["since=2026-03-01&until=2026-03-03", ["key_b", "key_a"], "1234567.8901234568"],
    ["since=2026-03-01&until=2026-03-02&by=day", ["2026-03-01"], "1234567.89012345679"],
    ["since=2026-03-02&until=2026-03-03T00:00:00Z&by=model", ["acme/one"], "0.00000000001"],
    ["since=2026-03-01&until=2026-03-03&by=group", ["default"], "1234567.8901234568"],
    ["period=2026-03&by=key,day", ["key_b", "key_a", "key_a"], "1234567.8901234568"],
    ["period=2026-03&group=default&model=acme/one", ["key_b", "key_a"], "1234567.8901234568"],
    ["period=2026-02", [], "0"],
    ["since=2026-03-03&until=2026-03-04", [], "0"],
    ["", [], "0"],
  ];
  for (const [query, names, total] of cases) {
    const { status, body } = await ask(gateway, `GET /usage?${query}`);
    assertEquals(status, 200, query);
    assertEquals((body.lines as JsonObject[]).map(({ name }) => name), names, query);
    assertEquals((body.total as JsonObject).cost_usd, total, query);
  }
});

Deno.test("by upstream, lines are per model and day, and pruned days are rejected", async () => {
  await using gateway = startAdmin();
  const { ledger } = gateway.store;
  await ledger.append([
    entry("a", { at: "2026-03-01T10:00:00Z", cost: 3n }),
    entry("b", { at: "2026-03-02T10:00:00Z", cost: 10n }),
    { ...entry("c", { at: "2026-03-02T11:00:00Z", cost: 100n }), source: "counted", attempts: 2 },
    { ...entry("d", { at: "2026-03-02T11:00:00Z", cost: 1000n }), upstream: "other" },
    { ...entry("e", { at: "2026-03-02T12:00:00Z", cost: 0n }), upstream: "", ending: "refused", attempts: 0 },
    entry("f", { at: "2026-03-03T00:00:00Z", cost: 10_000n }),
  ]);
  const line = (change: JsonObject) => ({
    upstream: "acme",
    model: "acme/one",
    requests: 1,
    attempts: 1,
    failed: 0,
    counted: 0,
    tokens: { ...NO_TOKENS, prompt: 1 },
    images: 0,
    unpriced: 0,
    upstream_usd: "0",
    margin_usd: change.cost_usd ?? "0",
    ...change,
  });
  const [one, two, other] = [
    line({ day: "2026-03-01", cost_usd: "0.000000000003" }),
    line({
      ...{ requests: 2, attempts: 3, counted: 1, tokens: { ...NO_TOKENS, prompt: 2 } },
      ...{ day: "2026-03-02", cost_usd: "0.00000000011" },
    }),
    line({ upstream: "other", day: "2026-03-02", cost_usd: "0.000000001" }),
  ];
  const until = "until=2026-03-03";
  const both = await ask(gateway, `GET /usage?by=upstream&since=2026-03-01&${until}`);
  assertEquals([both.status, both.headers.get("cache-control")], [200, "no-store"]);
  assertEquals(both.body, {
    since: "2026-03-01T00:00:00.000Z",
    until: "2026-03-03T00:00:00.000Z",
    by: "upstream",
    lines: [one, two, other],
    total: {
      ...{ requests: 4, attempts: 5, failed: 0, counted: 1, tokens: { ...NO_TOKENS, prompt: 4 }, images: 0 },
      ...{ unpriced: 0, upstream_usd: "0", cost_usd: "0.000000001113", margin_usd: "0.000000001113" },
    },
  });
  const single = await ask(gateway, `GET /usage?by=upstream&upstream=other&since=2026-03-01&${until}`);
  assertEquals(single.body.lines, [other]);
  // An upstream that is configured and has no requests.
  assertEquals((await ask(gateway, "GET /usage?by=upstream&upstream=embedded")).body.lines, []);

  while (await ledger.prune(Date.parse("2026-03-02") / 86_400_000, Infinity));
  assertEquals(errorOf(await ask(gateway, `GET /usage?by=upstream&since=2026-03-01&${until}`)), [
    400,
    "since",
    "Cannot sum up by upstream: single requests are kept from 2026-03-02 on",
  ]);
  assertEquals((await ask(gateway, `GET /usage?by=upstream&since=2026-03-02&${until}`)).body.lines, [two, other]);
  assertEquals(errorOf(await ask(gateway, "GET /usage?by=user&period=2026-03")), [
    400,
    "period",
    "Cannot sum up by user or tag: single requests are kept from 2026-03-02 on",
  ]);
});

Deno.test("an invalid usage query names the parameter", async () => {
  await using gateway = startAdmin();
  const cases: [query: string, param: string, message: string][] = [
    ["by=hour", "by", "known: key, group, model, day, user, tag, upstream"],
    ["by=group,hour", "by", "known: key, group, model, day, user, tag, upstream"],
    ["by=day,day", "by", "expected one or two different of"],
    ["since=yesterday", "since", 'Cannot read the moment "yesterday"'],
    ["until=7x", "until", 'Cannot read the time "7x"'],
    ["since=2026-03-02&until=2026-03-01", "until", "the period ends at 2026-03-01"],
    ["since=2026-02-30", "since", "Cannot read the moment"],
    ["person=me", "person", "known here: since, until, period, by, key, group, model, user, tag, upstream"],
    ["period=tomorrow", "period", 'Cannot read the period "tomorrow"'],
    ["period=today&since=1d", "period", "Cannot use a named period together"],
    ["key=nobody", "key", 'Cannot find key "nobody"'],
    ["group=nobody", "group", 'Cannot find group "nobody"'],
    ["model=no/model", "model", 'Cannot find model "no/model"'],
    ["tag=team,prod", "tag", 'Cannot read tag "team,prod": expected one tag'],
    ["by=upstream&key=nobody", "key", 'Cannot find key "nobody"'],
    ["by=key&by=day", "by", 'one value of "by"'],
    ["upstream=embedded", "upstream", 'Cannot use "upstream" without "by=upstream"'],
    ["by=key&upstream=embedded", "upstream", 'Cannot use "upstream" without "by=upstream"'],
    ["by=upstream&upstream=nobody", "upstream", 'Cannot find upstream "nobody": it is not configured'],
    ["by=upstream&upstream=", "upstream", 'Cannot find upstream ""'],
    ["by=upstream&until=7x", "until", 'Cannot read the time "7x"'],
  ];
  for (const [query, param, message] of cases) {
    const [status, at, text] = errorOf(await ask(gateway, `GET /usage?${query}`));
    assertEquals([status, at], [400, param], query);
    assertStringIncludes(text, message, query);
  }
  const [status, , text] = errorOf(await ask(gateway, "GET /usage/req_nobody"));
  assertEquals([status, text], [404, 'Cannot explain request "req_nobody": it is not in the ledger']);
});

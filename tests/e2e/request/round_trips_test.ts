/** Calls of a request to the store and to the limits: with both over the network, each is a round trip. */
import { assertEquals } from "@std/assert";
import { hashKey } from "../../../lib/access/keys.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { createMemoryLimiter } from "../../../lib/limits/memory_limiter.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { painter, paintsAll } from "../images/gateway.ts";
import { answer, asking, PRICING } from "./budgeted.ts";
import { type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";

const LIMITS = { requests_per_minute: 50, tokens_per_minute: 100_000, concurrency: 5 };
/** A budget for the model's maximum output, which a request without a maximum holds. */
const PLENTY = { usd: "100", period: "total" };
/** One for less than that, and for more than a client asks for. */
const LITTLE = { usd: "0.01", period: "total" };

interface Counted extends AsyncDisposable {
  gateway: TestGateway;
  /** Calls to the store and to the limits since the last `calls()`, and `upstream` for the upstream. */
  calls(): string[];
}

/** The same, with every call of a function noted with its name and first argument. */
function counted<Part extends object>(part: Part, note: (name: string, first: unknown) => void): Part {
  return new Proxy(part, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function" || typeof name !== "string") return member;
      return (...given: unknown[]) => {
        note(name, given[0]);
        return member.apply(target, given);
      };
    },
  });
}

function startCounted(
  group: JsonObject,
  respond: (request: UpstreamRequest) => ScriptedAnswer = answer("chat"),
): Counted {
  const calls: string[] = [];
  const noting = (part: string) => (name: string, first: unknown) => {
    // A client of another test can still send to this port, which its gateway had before, with a key unknown here.
    const isStray = name === "findByHash" && first !== hashKey(gateway.key.key);
    if (!isStray) calls.push(`${part}.${name}`);
  };
  const store = openMemoryStore();
  // Reading the version is not a round trip: a store over the network has no version.
  const { version: _, ...keys } = store.keys;
  const one = startUpstream((request) => {
    calls.push("upstream");
    return respond(request);
  });
  const gateway = startGateway({
    upstreams: { one: upstream("openai", one.url, { protocols: ["chat"] }) },
    models: ["acme/one", "acme/two"].map((id) => model(id, [{ upstream: "one", model: id }], { pricing: PRICING })),
    groups: { default: group },
  }, {
    store: {
      ...store,
      keys: counted(keys, noting("keys")),
      ledger: counted(store.ledger, noting("ledger")),
      answers: counted(store.answers, noting("answers")),
    },
    limiter: counted(createMemoryLimiter({ monotonic: () => performance.now() }), noting("limiter")),
    painters: { embedded: painter(paintsAll) },
  });
  return {
    gateway,
    // Calls of timers depend on the time and not on the request.
    calls: () => calls.splice(0).filter((name) => name !== "ledger.renew" && name !== "ledger.expire"),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
    },
  };
}

/** A group, and the calls of its requests before and after the upstream. */
const CASES: readonly { name: string; group: JsonObject; before: string[]; after: string[] }[] = [
  { name: "no limit, no budget", group: {}, before: [], after: ["ledger.append"] },
  {
    name: "limits",
    group: { key_limits: LIMITS, limits: LIMITS },
    before: ["limiter.take"],
    after: ["limiter.end", "ledger.append"],
  },
  {
    name: "budgets",
    group: { key_budget: PLENTY, budget: PLENTY },
    before: ["ledger.hold"],
    after: ["ledger.append"],
  },
  {
    name: "limits and budgets",
    group: { key_limits: LIMITS, limits: LIMITS, key_budget: PLENTY, budget: PLENTY },
    before: ["limiter.take", "ledger.hold"],
    after: ["limiter.end", "ledger.append"],
  },
];

for (const { name, group, before, after } of CASES) {
  Deno.test(`round trips with ${name}: one of each kind, in every protocol, whole and streamed`, async () => {
    await using counted = startCounted(group);
    const { gateway, calls } = counted;
    calls();
    let entries = 0;
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        for (const more of [{}, { models: ["acme/two"] }]) {
          const isNamed = protocol !== "messages" || !("models" in more);
          const body = prompt(protocol, { stream, ...(isNamed ? more : { fallbacks: [{ model: "acme/two" }] }) });
          const response = await gateway.ask(protocol, body);
          assertEquals(response.status, 200, await response.text());
          // A client that has the answer's end need not wait for any of it.
          const expected = ["keys.findByHash", ...before, "upstream", ...after];
          assertEquals(calls(), expected, `${protocol}, ${stream}, ${JSON.stringify(more)}`);
          entries++;
        }
      }
    }
    assertEquals((await entriesOf(gateway.store.ledger, entries)).length, entries);
  });

  Deno.test(`round trips with ${name}: no more for a request that fails upstream`, async () => {
    await using counted = startCounted(group, () => ({ status: 400, steps: ["{}"] }));
    const { gateway, calls } = counted;
    calls();
    const response = await gateway.ask("chat", asking("chat"));
    await response.text();
    assertEquals(response.status, 400);
    assertEquals(calls(), ["keys.findByHash", ...before, "upstream", ...after]);
  });

  Deno.test(`round trips with ${name}: the same for images`, async () => {
    await using counted = startCounted(group);
    const { gateway, calls } = counted;
    calls();
    const response = await fetch(`${gateway.url}/v1/images/generations`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key.key}` },
      body: JSON.stringify({ model: "sluice/canvas", prompt: "A cat", size: "1024x640", quality: "low" }),
    });
    assertEquals(response.status, 200, (await response.text()).slice(0, 200));
    assertEquals(calls(), ["keys.findByHash", ...before, ...after]);
  });
}

Deno.test("round trips: a refusal by a limit costs no more, and one by a budget also returns the limits", async () => {
  const cases: [JsonObject, string[]][] = [
    [{ key_limits: { requests_per_minute: 1 } }, ["limiter.take", "ledger.append"]],
    [{ key_limits: LIMITS, key_budget: { usd: "0.00001", period: "total" } }, [
      "limiter.take",
      "ledger.hold",
      "limiter.undo",
      "ledger.append",
    ]],
  ];
  for (const [group, refused] of cases) {
    await using counted = startCounted(group);
    const { gateway, calls } = counted;
    if (group.key_budget === undefined) await (await gateway.ask("chat", asking("chat"))).text();
    calls();
    const response = await gateway.ask("chat", asking("chat"));
    await response.text();
    assertEquals(response.status, 429);
    assertEquals(calls(), ["keys.findByHash", ...refused]);
  }
});

Deno.test("round trips: a small budget takes one more call for the affordable amount", async () => {
  await using counted = startCounted({ key_limits: LIMITS, key_budget: LITTLE });
  const { gateway, calls } = counted;
  calls();
  const response = await gateway.ask("chat", prompt("chat"));
  assertEquals(response.headers.get("x-sluice-max-tokens"), "1000", await response.text());
  assertEquals(calls(), [
    "keys.findByHash",
    "limiter.take",
    "ledger.hold",
    "ledger.hold",
    "upstream",
    "limiter.end",
    "ledger.append",
  ]);
});

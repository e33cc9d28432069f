import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../lib/canonical/types.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { BudgetClaim } from "../../lib/store/ledger.ts";
import { openStore } from "../../lib/store/open.ts";
import type { Store } from "../../lib/store/store.ts";
import { model, startGateway, type TestGateway, upstream } from "../upstreams/gateway.ts";
import { prompt, PROTOCOLS } from "../upstreams/said.ts";
import { usd } from "./bills.ts";
import { frames, TOLD, whole } from "./spoken.ts";
import { type Asked, type Said, startStepped, type Stepped } from "./stepped.ts";

/** Clients that ask at one time, and what their budget pays for. */
const CLIENTS = 64;
const PAID = 100;
const ROUNDS = 30;

/** The output's price in 1e-12 USD, and all that a request can cost: its input is free. */
const PRICE = 10_000_000n;
const PRICING = { prompt: "0", completion: "0.00001" };
const COST = BigInt(TOLD.completion) * PRICE;

/** The member that names a most number of tokens. */
const MOST: Readonly<Record<Protocol, string>> = {
  chat: "max_completion_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
};

interface Budgeted extends AsyncDisposable {
  gateway: TestGateway;
  upstream: Stepped;
}

/** A gateway whose one upstream speaks a protocol. */
function startBudgeted(
  { says = answer("chat"), spoken = "chat", row = {}, groups = {}, store, now }: {
    says?: (asked: Asked) => Said;
    spoken?: Protocol;
    row?: JsonObject;
    groups?: JsonObject;
    store?: Store;
    now?: () => number;
  } = {},
): Budgeted {
  const one = startStepped(says);
  const vendor = spoken === "messages" ? "anthropic" : "openai";
  const gateway = startGateway({
    upstreams: { one: upstream(vendor, one.url, { protocols: [spoken] }) },
    models: [
      model("acme/one", [{ upstream: "one", model: "m" }], { pricing: PRICING, ...row }),
      model("acme/free", [{ upstream: "one", model: "m" }]),
    ],
    groups: { default: {}, ...groups },
  }, { ...(store !== undefined && { store }), ...(now !== undefined && { now }) });
  return {
    gateway,
    upstream: one,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
    },
  };
}

function answer(spoken: Protocol): (asked: Asked) => Said {
  return ({ stream }) => {
    if (!stream) return { steps: [whole(spoken, "Hello there", "told")] };
    const { opening, pieces, ending } = frames(spoken, ["Hello ", "there"], "told");
    return { steps: [...opening, ...pieces, ...ending] };
  };
}

/** A prompt whose answer may have no more tokens than it will. */
function asking(protocol: Protocol, more: JsonObject = {}): JsonObject {
  return prompt(protocol, { [MOST[protocol]]: TOLD.completion, ...more });
}

/** Every store, in a place of its own. */
const STORES: readonly [name: string, open: (folder: string) => Store][] = [
  ["memory", () => openStore("memory:")],
  ["sqlite", (folder) => openStore(`sqlite:${folder}/sluice.db`, { own: true })],
];

for (const [name, open] of STORES) {
  Deno.test(`${name}: of ${CLIENTS} clients that race for a budget, exactly ${PAID} requests are paid for`, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await using budgeted = startBudgeted({ store: open(folder) });
      const { gateway, upstream } = budgeted;
      const { ledger } = gateway.store;
      for (let round = 1; round <= ROUNDS; round++) {
        const budget = { usd: usd(BigInt(PAID) * COST), period: "total" } as const;
        const key = await gateway.addKey({ rules: { budget } });
        const claim: BudgetClaim = { scope: "key", id: key.id, budget: BigInt(PAID) * COST, since: 0 };
        let paid = 0;
        await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
          const protocol = PROTOCOLS[client % PROTOCOLS.length] ?? "chat";
          for (let status = 200; status === 200;) {
            const response = await gateway.ask(protocol, asking(protocol, { stream: client % 2 === 0 }), { key });
            await response.text();
            status = response.status;
            if (status === 200) paid++;
            else assertEquals(status, 429);
            assert(await ledger.left(claim) >= 0n);
          }
        }));
        assertEquals([paid, upstream.asked.length], [PAID, PAID * round]);
        assertEquals(await ledger.left(claim), 0n);
      }
      assertEquals(await ledger.holds(), []);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

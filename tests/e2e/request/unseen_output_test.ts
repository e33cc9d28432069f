import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { BilledTokens, KeptEntry } from "../../../lib/store/ledger.ts";
import { simulateTime } from "../../support/simulated_time.ts";
import { soon, until } from "../../support/soon.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS } from "../../upstream/replies.ts";
import { disconnectsAfter, disconnectWatch } from "./exchange.ts";
import { frames, REASONED, REPORTED, type ReportedUsage, whole } from "../../upstream/frames.ts";
import { type FakeUpstream, type ScriptedAnswer, startUpstream, type Step } from "../../upstream/mod.ts";
import { entriesOf, tokens } from "./world.ts";
import { availableIn } from "../../support/available.ts";

const counter = await loadTokenCounter();
const PIECES = ["alpha beta ", "gamma delta "];
/** o200k tokens of a "Hello" prompt, in any protocol. */
const INPUT = 7;

/** USD per token, and the same in 1e-12 USD. */
const PRICING = { prompt: "0.00000125", completion: "0.00001" };
const UNITS = { prompt: 1_250_000n, completion: 10_000_000n };
const BUDGET = 1_000_000_000_000_000n;
const SLOTS = 8;

/** A model without reasoning in its row. */
const UNREASONING = { reasoning: undefined };

/** The upstream's output before the client disconnects, and afterwards. */
interface Answer {
  opening: string[];
  ending: string[];
}

function answerIn(spoken: Protocol, reported: ReportedUsage = "reasoned"): Answer {
  if (spoken === "gemini") return geminiAnswer(reported);
  const { opening, pieces, ending } = frames(spoken, PIECES, reported);
  return { opening: [...opening, ...pieces], ending };
}

function geminiAnswer(reported: ReportedUsage): Answer {
  const piece = (text: string, more: JsonObject = {}) =>
    `data: ${
      JSON.stringify({ candidates: [{ index: 0, content: { role: "model", parts: [{ text }] }, ...more }], ...more })
    }\n\n`;
  const usageMetadata = {
    promptTokenCount: 11,
    cachedContentTokenCount: 4,
    candidatesTokenCount: 5,
    ...(reported === "reasoned" && { thoughtsTokenCount: 20_000 }),
  };
  return { opening: PIECES.map((text) => piece(text)), ending: [piece("", { finishReason: "STOP", usageMetadata })] };
}

/** A gateway whose one model is at an upstream of a protocol. */
interface Place extends AsyncDisposable {
  gateway: TestGateway;
  upstream: FakeUpstream;
  /** Resolves when the gateway's server has seen the client of its one request disconnect. */
  gone: Promise<void>;
  /** The only entry, once no hold and no reservation is left. */
  settled(): Promise<KeptEntry>;
  /** Slots of concurrency that are free. */
  free(): Promise<number>;
}

/** The answer of an upstream; `gone` as in `Place`. */
type Says = (gone: Promise<void>) => ScriptedAnswer;

function start(
  spoken: Protocol,
  { says, row = {}, config = {}, timeouts = {} }: {
    says: Says;
    row?: JsonObject;
    config?: JsonObject;
    timeouts?: JsonObject;
  },
): Place {
  const { gone, gateway: options } = disconnectWatch();
  const left = gone();
  const one = startUpstream(() => ({ headers: { "content-type": "text/event-stream" }, ...says(left) }));
  const vendor = { chat: "openai", responses: "openai", messages: "anthropic", gemini: "gemini" }[spoken];
  const limits = { concurrency: SLOTS };
  const gateway = startGateway({
    upstreams: { one: upstream(vendor, one.url, { timeouts }) },
    models: [
      model("acme/one", [{ upstream: "one", model: "real-one", protocol: spoken }], { pricing: PRICING, ...row }),
    ],
    groups: { default: { remote_mcp: true, key_limits: limits, key_budget: { usd: "1000", period: "total" } } },
    ...config,
  }, options);
  const { store, key } = gateway;
  const free = async () => {
    const claim = { name: `key:${key.id}`, unit: "concurrency" as const, limit: SLOTS, cost: 1, reportOnly: false };
    return (await gateway.gateway.limiter.statuses([claim]))[0]?.remaining ?? 0;
  };
  return {
    gateway,
    upstream: one,
    gone: left,
    free,
    async settled() {
      await left;
      await entriesOf(store.ledger, 1);
      await gateway.gateway.backgroundTasks.done();
      await gateway.gateway.ledger.flush();
      // The answer's reader releases it after its entry.
      await until(
        "everything is free",
        async () => (await store.ledger.holds()).length === 0 && await free() === SLOTS,
      );
      const [entry, ...others] = await store.ledger.entries({ after: 0, limit: 10 });
      assert(entry !== undefined && others.length === 0);
      const claim = { scope: "key", id: key.id, budget: BUDGET, since: 0 } as const;
      assertEquals(await availableIn(store.ledger, claim), BUDGET - entry.cost);
      assert(entry.held >= entry.cost && entry.overrun === 0n);
      return entry;
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await one[Symbol.asyncDispose]();
    },
  };
}

/** A prompt whose answer may be long. */
function asking(protocol: Protocol, more: JsonObject = {}): JsonObject {
  return prompt(protocol, { ...(protocol === "messages" && { max_tokens: 50_000 }), ...more });
}

/** The client reads the visible output, and leaves. */
async function looksAndLeaves(
  { gateway }: Place,
  protocol: Protocol,
  more: JsonObject = {},
): Promise<void> {
  const disconnect = new AbortController();
  const body = asking(protocol, { stream: true, ...more });
  const response = await gateway.ask(protocol, body, { signal: disconnect.signal });
  // The last piece waits for the next event if it is translated for a client of Gemini's protocol.
  await disconnectsAfter(response, protocol === "gemini" ? "beta" : "delta", { disconnect });
}

function assertBilled(entry: KeptEntry, expected: Partial<BilledTokens>, about: string): void {
  assertEquals([entry.ending, entry.tokens], ["client_disconnected", tokens(expected)], about);
  const { prompt, input_cache_read, completion } = entry.tokens;
  const input = BigInt(prompt + input_cache_read) * UNITS.prompt;
  assertEquals(entry.cost, input + BigInt(completion) * UNITS.completion, about);
}

/** Sends visible output, then the rest of its answer once the client has disconnected. */
function speaksOn(spoken: Protocol, reported?: ReportedUsage): Says {
  const { opening, ending } = answerIn(spoken, reported);
  return (gone) => ({ steps: [...opening, gone, ...ending] });
}

/** Expected charge: the visible output, and the input as far as it was known. */
function seen(spoken: Protocol): Partial<BilledTokens> {
  const input = spoken === "messages" ? { prompt: REPORTED.prompt, input_cache_read: REPORTED.input_cache_read } : {
    prompt: INPUT,
  };
  return { ...input, completion: counter.count(PIECES.join("")) };
}

for (const spoken of PROTOCOLS) {
  Deno.test(`${spoken} upstream: reasoning is billed by usage if the client disconnects before the usage arrives`, async () => {
    await Promise.all(PROTOCOLS.map(async (protocol) => {
      await using place = start(spoken, { says: speaksOn(spoken) });
      await looksAndLeaves(place, protocol);
      const entry = await place.settled();
      assertBilled(entry, REASONED, protocol);
      assertEquals([entry.status, entry.source], [200, "upstream"], protocol);
    }));
  });

  Deno.test(`${spoken} upstream: a whole answer is billed by usage if the client disconnects before it`, async () => {
    await Promise.all(PROTOCOLS.map(async (protocol) => {
      const content = spoken === "gemini"
        ? answerIn(spoken).ending.join("").replace("data: ", "")
        : whole(spoken, "alpha", "reasoned");
      await using place = start(spoken, {
        says: (gone) => ({ before: gone, headers: { "content-type": "application/json" }, steps: [content] }),
        row: UNREASONING,
      });
      const disconnect = new AbortController();
      const pending = place.gateway.ask(protocol, asking(protocol), { signal: disconnect.signal });
      await until("the upstream was asked", () => place.upstream.requests.length === 1);
      disconnect.abort();
      await pending.catch(() => {});
      const entry = await place.settled();
      assertBilled(entry, REASONED, protocol);
      assertEquals([entry.status, entry.attempts], [499, 1], protocol);
    }));
  });
}

Deno.test("the sent output is billed and the upstream cancelled if the model's output is all visible", async () => {
  const cases: [name: string, row: JsonObject, requested: JsonObject][] = [
    ["a model that does not reason", UNREASONING, {}],
    ["reasoning that was switched off", {}, { reasoning_effort: "none" }],
  ];
  for (const [name, row, requested] of cases) {
    await using place = start("chat", { says: () => neverEnding(answerIn("chat")), row });
    await looksAndLeaves(place, "chat", requested);
    await soon("the upstream is cancelled", place.upstream.requests[0]?.gone ?? Promise.reject(new Error("not asked")));
    assertBilled(await place.settled(), seen("chat"), name);
  }
});

function neverEnding({ opening }: Answer): ScriptedAnswer {
  return { steps: [...opening, new Promise<never>(() => {})] };
}

Deno.test("a free model is always cancelled", async () => {
  const free = { pricing: { prompt: "0", completion: "0" } };
  await using place = start("chat", { says: () => neverEnding(answerIn("chat")), row: free });
  await looksAndLeaves(place, "chat");
  await soon("the upstream is cancelled", place.upstream.requests[0]?.gone ?? Promise.reject(new Error("not asked")));
  assertEquals((await place.settled()).cost, 0n);
});

Deno.test("other invisible output makes the answer be read to its end", async () => {
  const thinking: Step = `data: ${
    JSON.stringify({ id: "c", choices: [{ index: 0, delta: { reasoning_content: "hm" }, finish_reason: null }] })
  }\n\n`;
  const mcp = { type: "mcp", server_label: "one", server_url: "https://mcp.example.com" };
  const cases: [name: string, protocol: Protocol, row: JsonObject, requested: JsonObject, before?: Step][] = [
    ["a tool that runs at the vendor", "responses", UNREASONING, { tools: [mcp] }],
    ["several answers", "chat", UNREASONING, { n: 2 }],
    ["images", "chat", {
      ...UNREASONING,
      architecture: { input_modalities: ["text"], output_modalities: ["text", "image"] },
    }, {}],
    ["predictions that turn out wrong", "chat", UNREASONING, { prediction: { type: "content", content: "alpha" } }],
    ["reasoning that the row does not tell of", "chat", UNREASONING, {}, thinking],
    ["reasoning that cannot be switched off", "chat", {
      reasoning: { modes: ["adaptive"], efforts: ["low"], mandatory: true },
    }, { reasoning_effort: "none" }],
  ];
  await Promise.all(cases.map(async ([name, protocol, row, requested, before]) => {
    const { opening, ending } = answerIn(protocol);
    const received = before === undefined ? opening : [before, ...opening];
    await using place = start(protocol, { says: (gone) => ({ steps: [...received, gone, ...ending] }), row });
    await looksAndLeaves(place, protocol, requested);
    assertBilled(await place.settled(), REASONED, name);
  }));
});

/** A PDF with this size and this number of pages. */
function pdf(bytes: number, pages: number): string {
  const objects = "<</Type/Page/Parent 2 0 R>>\n".repeat(pages);
  return btoa(`%PDF-1.4\n${objects}`.padEnd(bytes, "x"));
}

/** A user's file in each protocol. */
function fileOf(protocol: Protocol, data: string): JsonObject {
  const url = `data:application/pdf;base64,${data}`;
  switch (protocol) {
    case "chat":
      return { messages: [{ role: "user", content: [{ type: "file", file: { filename: "a.pdf", file_data: url } }] }] };
    case "responses":
      return { input: [{ role: "user", content: [{ type: "input_file", filename: "a.pdf", file_data: url }] }] };
    case "messages": {
      const source = { type: "base64", media_type: "application/pdf", data };
      return { messages: [{ role: "user", content: [{ type: "document", source }] }] };
    }
    case "gemini":
      return { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "application/pdf", data } }] }] };
  }
}

Deno.test("a file whose tokens only the upstream knows is billed by usage", async () => {
  await Promise.all(PROTOCOLS.map(async (protocol) => {
    await using place = start("chat", { says: speaksOn("chat", "reported"), row: UNREASONING });
    await looksAndLeaves(place, protocol, fileOf(protocol, pdf(10_000, 3)));
    assertBilled(await place.settled(), REPORTED, protocol);
  }));
});

Deno.test("a file is estimated by its pages if its upstream is cancelled, up to the model's context", async () => {
  const window = 100_000;
  const row = { ...UNREASONING, on_disconnect: "cancel", context_length: window };
  const cases: [pages: number, bytes: number, least: number, most: number][] = [
    [3, 600_000, 3 * 1_600, 3 * 1_600 + 100],
    [90, 600_000, window, window],
  ];
  for (const [pages, bytes, least, most] of cases) {
    await Promise.all(PROTOCOLS.map(async (protocol) => {
      await using place = start("chat", { says: () => neverEnding(answerIn("chat")), row });
      await looksAndLeaves(place, protocol, fileOf(protocol, pdf(bytes, pages)));
      const { tokens: { prompt }, source } = await place.settled();
      assert(prompt >= least && prompt <= most, `${protocol}: ${pages} pages are ${prompt} tokens`);
      assertEquals(source, "estimated", protocol);
    }));
  }
});

Deno.test("the reported input of an upstream takes precedence over the estimate of a file", async () => {
  for (const protocol of PROTOCOLS) {
    await using place = start("messages", { says: () => neverEnding(answerIn("messages")), row: UNREASONING });
    await looksAndLeaves(place, protocol, fileOf(protocol, pdf(600_000, 90)));
    const entry = await place.settled();
    assertBilled(entry, seen("messages"), protocol);
    assertEquals(entry.source, "counted", protocol);
  }
});

Deno.test("a drained answer keeps its slot and hold, and may begin after its client disconnected", async () => {
  const usage = Promise.withResolvers<void>();
  const { opening, ending } = answerIn("chat");
  await using place = start("chat", {
    says: (gone) => ({ before: gone, steps: [...opening, usage.promise, ...ending] }),
  });
  const disconnect = new AbortController();
  const pending = place.gateway.ask("chat", asking("chat", { stream: true }), { signal: disconnect.signal });
  await until("the upstream was asked", () => place.upstream.requests.length === 1);
  disconnect.abort();
  await pending.catch(() => {});
  await place.gone;
  assertEquals([await place.free(), (await place.gateway.store.ledger.holds()).length], [SLOTS - 1, 1]);
  usage.resolve();
  const entry = await place.settled();
  assertBilled(entry, REASONED, "before the first event");
  assertEquals(entry.status, 499);
});

Deno.test("a client pays for the output produced when its drained answer ends early", async () => {
  const { opening } = answerIn("chat");
  const cases: [name: string, says: Says, more: { ms?: number; config?: JsonObject }][] = [
    ["its upstream breaks off", (gone) => ({ steps: [...opening, gone], cut: true }), {}],
    ["its upstream falls silent", () => neverEnding(answerIn("chat")), { ms: 1_000 }],
    ["too many are read on", () => neverEnding(answerIn("chat")), {
      config: { resource_limits: { drained_requests: 0 } },
    }],
  ];
  for (const [name, says, { ms = 0, config = {} }] of cases) {
    await using place = start("chat", { says, config, timeouts: { total_ms: 1_000 } });
    {
      using time = simulateTime(0);
      await looksAndLeaves(place, "chat");
      let isGone = false;
      void place.gone.then(() => isGone = true);
      while (!isGone) await time.pass(1);
      await time.pass(ms);
    }
    const entry = await place.settled();
    assertBilled(entry, seen("chat"), name);
    assertEquals(entry.source, "counted", name);
  }
});

Deno.test("a drained answer at shutdown is billed for the output so far", async () => {
  await using place = start("chat", { says: () => neverEnding(answerIn("chat")) });
  await looksAndLeaves(place, "chat");
  await place.gone;
  await place.gateway.gateway.inFlight.stop(new GatewayError("overloaded", "End"));
  assertBilled(await place.settled(), seen("chat"), "ended");
});

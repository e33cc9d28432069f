import { assert, assertEquals, assertMatch } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { readSse } from "../../support/sse.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Ending, KeptEntry } from "../../../lib/store/ledger.ts";
import { othersTurns } from "../../support/others_turns.ts";
import { until } from "../../support/soon.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import {
  formOf,
  gray,
  type ImageGateway,
  type Painter,
  painter,
  paintsAll,
  type Script,
  startPainted,
  type Step,
} from "./gateway.ts";
import { png } from "../../images/image_files.ts";
import { entriesOf } from "../request/world.ts";
import { availableIn } from "../../support/available.ts";

const PROMPT = (await loadTokenCounter()).count("A cat");
const IMAGE = gray({ width: 1024, height: 1024 });
/** Tokens of such an image, and prices of a token in 1e-12 USD. */
const TOKENS = 7_024;
const PRICE = { prompt: 750_000n, image: 4_500_000n };
const BUDGET = 5_000_000_000_000n;
const LIMITS = { requests_per_minute: 20, tokens_per_minute: 1_000_000, concurrency: 4 };
const FILE: JsonObject = {
  groups: { default: { key_limits: LIMITS, key_budget: { usd: "5", period: "total" } } },
  keep_alive_seconds: 1,
};
const BROKEN = new GatewayError("upstream", "Cannot paint");

function costOf(images: number): bigint {
  return images === 0 ? 0n : BigInt(PROMPT) * PRICE.prompt + BigInt(images * TOKENS) * PRICE.image;
}

/** USD as reported: amounts here are below 1 USD, and not 0. */
function usd(amount: bigint): string {
  return amount === 0n ? "0" : `0.${amount.toString().padStart(12, "0").replace(/0+$/, "")}`;
}

function image(index: number): Step {
  return { type: "image", index, base64: IMAGE };
}

function failed(index: number): Step {
  return { type: "failed", index, error: BROKEN };
}

interface Expected {
  status: number;
  ending: Ending;
  images: number;
  attempts?: number;
}

/** Asserts that the ledger has exactly these entries in this order, and that no slot or hold remains. */
async function assertEntered(running: ImageGateway, expected: readonly Expected[]): Promise<KeptEntry[]> {
  const entries = await entriesOf(running.gateway.store.ledger, expected.length);
  const { gateway } = running;
  await gateway.backgroundTasks.done();
  await gateway.ledger.flush();
  assertEquals((await gateway.store.ledger.entries({ after: 0, limit: 100 })).length, expected.length);
  assertEquals(
    entries.map(({ status, ending, images, cost, tokens, source, attempts }) => ({
      status,
      ending,
      images,
      cost,
      prompt: tokens.prompt,
      completion: tokens.completion,
      source,
      attempts,
    })),
    expected.map(({ status, ending, images, attempts = 1 }) => ({
      status,
      ending,
      images: images,
      cost: costOf(images),
      prompt: images === 0 ? 0 : PROMPT,
      completion: images * TOKENS,
      source: images > 0 ? "formula" : "none",
      attempts,
    })),
  );
  const spent = expected.reduce((sum, { images }) => sum + costOf(images), 0n);
  const id = entries[0]?.keyId ?? "";
  assertEquals(await gateway.store.ledger.holds(), []);
  assertEquals(
    await availableIn(gateway.store.ledger, { scope: "key", id, budget: BUDGET, since: 0 }),
    BUDGET - spent,
  );
  const slots = { name: `key:${id}`, unit: "concurrency" as const, limit: 4, cost: 1, reportOnly: false };
  assertEquals((await gateway.limiter.statuses([slots]))[0]?.remaining, 4);
  return entries;
}

function start(script: Script, more: JsonObject = {}): ImageGateway {
  return startPainted({ p: painter(script) }, { ...FILE, ...more });
}

/** Values of a model's `on_disconnect`; undefined for the default. */
const ON_DISCONNECT = [undefined, "drain", "cancel"] as const;

/** A gateway whose model has this `on_disconnect`. */
function startWith(
  onDisconnect: typeof ON_DISCONNECT[number],
  script: Script | Painter,
  { more = {}, ...options }: { more?: JsonObject; arriving?: (request: Request) => void } = {},
): ImageGateway {
  const row = onDisconnect === undefined ? {} : { on_disconnect: onDisconnect };
  const upstream = typeof script === "function" ? painter(script) : script;
  return startPainted({ p: upstream }, { ...FILE, ...more }, { row, ...options });
}

const SIZE = { size: "1024x1024" };

Deno.test("whole answers: each delivered image is charged once, with the cost that the client is told", async (t) => {
  const cases: [name: string, n: number, script: Script, expected: Expected][] = [
    ["all", 2, () => [image(0), image(1)], { status: 200, ending: "done", images: 2 }],
    ["one fails", 3, () => [image(2), failed(1), image(0)], { status: 200, ending: "partial", images: 2 }],
    ["one comes, then it breaks", 2, () => [image(1), BROKEN], { status: 200, ending: "partial", images: 1 }],
    ["one comes twice", 1, () => [image(0), image(0)], { status: 200, ending: "done", images: 1 }],
  ];
  for (const [name, n, script, expected] of cases) {
    await t.step(name, async () => {
      await using gateway = start(script);
      const response = await gateway.generate({ ...SIZE, n });
      const { usage, data } = await response.json();
      const [entry] = await assertEntered(gateway, [expected]);
      assertEquals(data.length, expected.images);
      const indices = data.map(({ index }: { index: number }) => index);
      if (expected.ending === "partial") assertEquals(indices, name === "one fails" ? [0, 2] : [1]);
      assertEquals([usage.input_tokens, usage.output_tokens], [entry?.tokens.prompt, entry?.tokens.completion]);
      assertEquals(response.headers.get("x-sluice-cost"), usd(entry?.cost ?? 0n));
      assertEquals(response.headers.get("x-request-id"), `req_${entry?.id}`);
    });
  }
  for (
    const [name, script, status] of [
      ["all fail", () => [failed(0)], 502],
      ["the host refuses", () => new GatewayError("invalid", "No"), 400],
    ] as [string, Script, number][]
  ) {
    await t.step(name, async () => {
      await using gateway = start(script);
      const response = await gateway.generate(SIZE);
      await response.body?.cancel();
      assertEquals([response.status, response.headers.get("x-sluice-cost")], [status, "0"]);
      const [entry] = await assertEntered(gateway, [{ status, ending: "failed", images: 0 }]);
      assertEquals(response.headers.get("x-request-id"), `req_${entry?.id}`);
    });
  }
  await t.step("an edit", async () => {
    await using gateway = start(paintsAll);
    const response = await gateway.edit(formOf({ size: "1024x1024", prompt: "A cat" }, [["image", png(1024, 1024)]]));
    await response.body?.cancel();
    const [entry] = await assertEntered(gateway, [{ status: 200, ending: "done", images: 1 }]);
    assertEquals(entry?.endpoint, "images.edits");
  });
  await t.step("the second host", async () => {
    const busy = painter(() => new GatewayError("overloaded", "Busy"));
    await using gateway = startPainted({ a: busy, b: painter(paintsAll) }, FILE);
    await (await gateway.generate(SIZE)).body?.cancel();
    const [entry] = await assertEntered(gateway, [{ status: 200, ending: "done", images: 1, attempts: 2 }]);
    assertEquals(entry?.upstream, "b");
  });
});

Deno.test("a client that disconnects before its images pays for them, unless its model is cancelled", async () => {
  for (const onDisconnect of ON_DISCONNECT) {
    const drain = onDisconnect !== "cancel";
    for (const headers of [{}, { "idempotency-key": "a" }] as Record<string, string>[]) {
      const [requested, wait] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let upstreamSignal: AbortSignal | undefined;
      await using gateway = startWith(onDisconnect, ({ signal }) => {
        upstreamSignal = signal;
        requested.resolve();
        return [wait.promise, image(0)];
      });
      const { drains } = gateway.gateway;
      const draining = Promise.withResolvers<void>();
      const begin = drains.begin.bind(drains);
      drains.begin = (done, most) => {
        draining.resolve();
        return begin(done, most);
      };
      const leave = new AbortController();
      const pending = gateway.generate(SIZE, { signal: leave.signal, headers }).catch(() => {});
      await requested.promise;
      leave.abort();
      await pending;
      if (drain) {
        // The gateway has noticed the disconnect.
        await draining.promise;
        wait.resolve();
      }
      await assertEntered(gateway, [{
        status: 499,
        ending: drain ? "client_disconnected" : "failed",
        images: drain ? 1 : 0,
      }]);
      assertEquals(upstreamSignal?.aborted, !drain);
    }
  }
});

Deno.test("a replay has its own entry, and is free", async () => {
  await using gateway = start(paintsAll);
  const headers = { "idempotency-key": "a" };
  const answers = [await gateway.generate(SIZE, { headers }), await gateway.generate(SIZE, { headers })];
  for (const answer of answers) await answer.body?.cancel();
  const entries = await assertEntered(gateway, [
    { status: 200, ending: "done", images: 1 },
    { status: 200, ending: "done", images: 0, attempts: 0 },
  ]);
  assertEquals(answers.map(({ headers }) => headers.get("x-request-id")), entries.map(({ id }) => `req_${id}`));
  assertEquals(answers.map(({ headers }) => headers.get("x-sluice-cost")), [usd(costOf(1)), "0"]);
});

Deno.test("if the first of two clients with one key leaves, the work is charged to it, and the second pays nothing", async () => {
  const [requested, wait] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const left = Promise.withResolvers<void>();
  await using gateway = startWith(undefined, () => {
    requested.resolve();
    return [wait.promise, image(0)];
  }, { arriving: ({ signal }) => signal.addEventListener("abort", () => left.resolve()) });
  const headers = { "idempotency-key": "a" };
  const leave = new AbortController();
  const first = gateway.generate(SIZE, { headers, signal: leave.signal }).catch(() => {});
  await requested.promise;
  const second = gateway.generate(SIZE, { headers });
  await until("the second request", () => gateway.gateway.inFlight.count() === 2);
  await othersTurns(4);
  leave.abort();
  await first;
  await left.promise;
  await othersTurns(4);
  wait.resolve();
  const response = await second;
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("x-sluice-cost")], [200, "0"]);
  await assertEntered(gateway, [
    { status: 200, ending: "done", images: 1 },
    { status: 200, ending: "done", images: 0, attempts: 0 },
  ]);
});

Deno.test("streams: sent images are charged once, and the last image states the total cost", async (t) => {
  const cases: [name: string, n: number, script: Script, expected: Expected][] = [
    ["all", 3, () => [image(1), image(0), image(2)], { status: 200, ending: "done", images: 3 }],
    ["one fails", 2, () => [failed(0), image(1)], { status: 200, ending: "partial", images: 1 }],
    ["it breaks after one", 2, () => [image(0), BROKEN], { status: 200, ending: "partial", images: 1 }],
  ];
  for (const [name, n, script, expected] of cases) {
    await t.step(name, async () => {
      await using gateway = start(script);
      const response = await gateway.generate({ ...SIZE, n, stream: true });
      const events = readSse(await response.text());
      const [entry] = await assertEntered(gateway, [expected]);
      const images = events.filter(({ event }) => event === "image_generation.completed");
      assertEquals(images.length, expected.images);
      const sum = (name: string) => images.reduce((total, { data }) => total + data.usage[name], 0);
      assertEquals([sum("input_tokens"), sum("output_tokens")], [entry?.tokens.prompt, entry?.tokens.completion]);
      const costs = images.flatMap(({ data }) => data.sluice_cost ?? []);
      assertEquals(costs, expected.ending === "done" ? [usd(entry?.cost ?? 0n)] : []);
      assertEquals(response.headers.get("x-request-id"), `req_${entry?.id}`);
    });
  }
  await t.step("a failure before the first image", async () => {
    await using gateway = start(() => [BROKEN]);
    const response = await gateway.generate({ ...SIZE, stream: true });
    assertMatch(await response.text(), /Cannot paint/);
    assertEquals(response.status, 502);
    await assertEntered(gateway, [{ status: 502, ending: "failed", images: 0 }]);
  });
  await t.step("a failure after keep-alives", async () => {
    const kept = Promise.withResolvers<void>();
    await using gateway = start(() => [kept.promise, BROKEN]);
    const response = await gateway.generate({ ...SIZE, stream: true });
    let text = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.includes("keep-alive")) kept.resolve();
    }
    assertMatch(text, /keep-alive[^]*Cannot paint/);
    await assertEntered(gateway, [{ status: 200, ending: "failed", images: 0 }]);
  });
});

/** Reads a stream until this number of images is complete, then disconnects. */
async function disconnectsAfter(response: Response, images: number): Promise<void> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  for (let text = ""; text.split("}\n\n").length <= images || !text.includes(":");) {
    const read = await reader?.read();
    assert(read?.value !== undefined);
    text += decoder.decode(read.value, { stream: true });
  }
  await reader?.cancel();
}

Deno.test("a disconnected client pays for all images, or for the sent ones if its model is cancelled", async () => {
  for (const onDisconnect of ON_DISCONNECT) {
    const drain = onDisconnect !== "cancel";
    for (const images of [0, 1, 2]) {
      const wait = Promise.withResolvers<void>();
      const upstream = painter(() => [
        ...[0, 1, 2].slice(0, images).map(image),
        wait.promise,
        ...[0, 1, 2].slice(images).map(image),
      ]);
      const left = Promise.withResolvers<void>();
      const arriving = ({ signal }: Request) => signal.addEventListener("abort", () => left.resolve());
      await using gateway = startWith(onDisconnect, upstream, { arriving });
      const response = await gateway.generate({ ...SIZE, n: 3, stream: true });
      // Without an image it is a keep-alive that is read.
      await disconnectsAfter(response, images);
      await left.promise;
      await othersTurns(4);
      if (drain) wait.resolve();
      const paid = drain ? 3 : images;
      await assertEntered(gateway, [
        paid === 0
          ? { status: 499, ending: "failed", images: 0 }
          : { status: 200, ending: "client_disconnected", images: paid },
      ]);
      if (!drain) assert(upstream.cancelled > 0);
    }
  }
});

Deno.test("a disconnected client pays for an image of which it got a preview, if its answer is not drained", async () => {
  const cases: [row: JsonObject, more: JsonObject][] = [
    [{ on_disconnect: "cancel" }, {}],
    [{}, { resource_limits: { drained_requests: 0 } }],
  ];
  for (const [row, more] of cases) {
    const script: Script = () => [
      image(2),
      { type: "partial", index: 0, step: 0, base64: IMAGE },
      { type: "partial", index: 0, step: 1, base64: "AA" },
      new Promise(() => {}),
    ];
    await using gateway = startPainted({ p: painter(script) }, { ...FILE, ...more }, { row });
    await disconnectsAfter(await gateway.generate({ ...SIZE, n: 3, stream: true, partial_images: 2 }), 3);
    await assertEntered(gateway, [{ status: 200, ending: "client_disconnected", images: 2 }]);
  }
});

Deno.test("an unread stream ends, and its sent or finished images are charged", async () => {
  for (const onDisconnect of ON_DISCONNECT) {
    const images = onDisconnect === "cancel" ? 0 : 3;
    await using gateway = startWith(
      onDisconnect,
      // Far more than the system buffers for a client that does not read.
      () => [0, 1, 2].map((index): Step => ({ type: "image", index, base64: "A".repeat(24_000_000) })),
      { more: { resource_limits: { answer_unread_ms: 100 } } },
    );
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: gateway.port });
    const body = JSON.stringify({ model: "acme/paint", prompt: "A cat", quality: "low", stream: true, n: 3, ...SIZE });
    const head =
      `POST /v1/images/generations HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${gateway.key.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    await connection.write(new TextEncoder().encode(head + body));
    const ended = images === 0
      ? { status: 499, ending: "failed" } as const
      : { status: 200, ending: "client_disconnected" } as const;
    await assertEntered(gateway, [{ ...ended, images }]);
  }
});

Deno.test("no more images than the limit allows are made for disconnected clients", async () => {
  const arrived = Promise.withResolvers<void>();
  const script: Script = () => {
    arrived.resolve();
    return [new Promise(() => {}), image(0)];
  };
  await using gateway = start(script, { resource_limits: { drained_requests: 0 } });
  const leave = new AbortController();
  const pending = gateway.generate(SIZE, { signal: leave.signal }).catch(() => {});
  await arrived.promise;
  leave.abort();
  await pending;
  await assertEntered(gateway, [{ status: 499, ending: "failed", images: 0 }]);
});

Deno.test("nothing of the last image is sent before its entry is durable", async () => {
  for (const stream of [false, true]) {
    await using gateway = start(paintsAll);
    const { ledger } = gateway.gateway.store;
    const [arrived, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const append = ledger.append;
    ledger.append = async (entries) => {
      arrived.resolve();
      await open.promise;
      return await append(entries);
    };
    let answered = false;
    const answer = gateway.generate({ ...SIZE, stream }).then((response) => {
      answered = true;
      return response.text();
    });
    await arrived.promise;
    await othersTurns(20);
    assertEquals(answered, false);
    open.resolve();
    assert((await answer).includes(IMAGE));
    await assertEntered(gateway, [{ status: 200, ending: "done", images: 1 }]);
  }
});

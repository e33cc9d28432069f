import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../lib/canonical/types.ts";
import type { JsonObject } from "../../lib/json.ts";
import { loadTokenCounter } from "../../lib/metering/tokens.ts";
import type { BilledTokens, Ending, KeptEntry, UsageSource } from "../../lib/store/ledger.ts";
import { othersTurns } from "../others_turns.ts";
import type { GatewayOptions } from "../upstreams/gateway.ts";
import { errorBody, errorFrame, prompt, PROTOCOLS, SUCCESS } from "../upstreams/said.ts";
import { soon } from "../soon.ts";
import { assertSameBill, streamedBill, usd, wholeBill } from "./bills.ts";
import { frames, TOLD, type Told, whole } from "./spoken.ts";
import type { Said, Step } from "./stepped.ts";
import {
  chargeOf,
  gatedStore,
  priceOf,
  spokenBy,
  startWorld,
  tokens,
  type Way,
  type World,
  type WorldOptions,
} from "./world.ts";

const PIECES = ["alpha beta ", "gamma delta ", "epsilon zeta ", "eta theta"];
const TEXT = PIECES.join("");
const counter = await loadTokenCounter();
/** o200k tokens of a prompt that says "Hello", in any protocol: 1, 3 for the message, and 3 for the answer's beginning. */
const INPUT = 7;

/** What must be in the ledger. */
interface Expected {
  status: number;
  ending: Ending;
  /** Absent: nothing is charged. */
  tokens?: BilledTokens;
  source?: UsageSource;
  /** Absent: one. */
  attempts?: number;
}

/** A world before its start. */
interface Planned {
  protocol: Protocol;
  way: Way;
  /** Resolves when the gateway's server has seen the client leave, and whoever wants to be told has been. */
  gone: () => Promise<void>;
}

/** One ending of a request, in every protocol and every way it is possible in. */
interface Case {
  name: string;
  ways: readonly Way[];
  options?: (world: Planned) => Partial<WorldOptions>;
  /** Plays the client, and tells what must be in the ledger. The response is absent where the client got none. */
  act(world: World): Promise<{ response?: Response; expected: Expected }>;
}

const HTTP: readonly Way[] = ["relayed", "translated"];
const ALL: readonly Way[] = [...HTTP, "embedded"];
const FAILED: Pick<Expected, "ending"> = { ending: "failed" };
const COMPLETE: Expected = { status: 200, ending: "end", tokens: tokens(TOLD), source: "upstream" };
const COUNTED: Expected = { ...COMPLETE, tokens: tokens({ prompt: INPUT, completion: counted(4) }), source: "counted" };

function counted(pieces: number): number {
  return counter.count(PIECES.slice(0, pieces).join(""));
}

/** What is charged to a client that left after so many pieces. */
function left(protocol: Protocol, way: Way, pieces: number): Expected {
  // Only this protocol tells its input at the beginning.
  const input = spokenBy(protocol, way) === "messages"
    ? { prompt: TOLD.prompt, input_cache_read: TOLD.input_cache_read }
    : { prompt: INPUT };
  return {
    status: 200,
    ending: "abandoned",
    tokens: tokens({ ...input, completion: counted(pieces) }),
    source: "counted",
  };
}

/** An upstream that answers as it is asked, streamed or whole. */
function answers(told: Told): (world: Pick<Planned, "protocol" | "way">) => Partial<WorldOptions> {
  return ({ protocol, way }) => ({ says: ({ stream }) => ({ steps: stepsOf(spokenBy(protocol, way), stream, told) }) });
}

function stepsOf(spoken: Protocol, stream: boolean, told: Told): string[] {
  if (!stream) return [whole(spoken, TEXT, told)];
  const { opening, pieces, ending } = frames(spoken, PIECES, told);
  return [...opening, ...pieces, ...ending];
}

/** An upstream that streams, with other steps in place of what follows so many pieces. */
function streamsThen(
  count: number,
  rest: (frames: { ending: string[]; pieces: string[]; spoken: Protocol } & Pick<Planned, "gone">) => Step[],
  more: Partial<Said> = {},
): (world: Planned) => Partial<WorldOptions> {
  return ({ protocol, way, gone }) => {
    const spoken = spokenBy(protocol, way);
    const { opening, pieces, ending } = frames(spoken, PIECES, "told");
    const steps = () => [
      ...opening,
      ...pieces.slice(0, count),
      ...rest({ ending, pieces: pieces.slice(count), spoken, gone }),
    ];
    return { says: () => ({ steps: steps(), ...more }) };
  };
}

function asking(protocol: Protocol, stream: boolean): JsonObject {
  const options = protocol === "chat" && stream ? { stream_options: { include_usage: true } } : {};
  return prompt(protocol, { stream, ...options });
}

function ask(world: World, stream: boolean, signal?: AbortSignal): Promise<Response> {
  const { gateway, protocol } = world;
  return gateway.ask(protocol, asking(protocol, stream), signal === undefined ? {} : { signal });
}

/** A whole exchange: the client reads to the end and is told the bill that is kept. */
function reads(stream: boolean, expected: Expected | ((protocol: Protocol, way: Way) => Expected)): Case["act"] {
  return async (world) => {
    const { protocol, way } = world;
    const response = await ask(world, stream);
    const text = await response.text();
    assertEquals(response.status, 200, text);
    assert(!stream || text.includes(SUCCESS[protocol]), text);
    const bill = stream ? streamedBill(protocol, text) : wholeBill(protocol, response, text);
    assertSameBill(bill, await world.entry(), `${protocol} ${way}`);
    return { response, expected: typeof expected === "function" ? expected(protocol, way) : expected };
  };
}

/** A stream that ends with an error: there is nothing to pay, and the client is told of no bill. */
const readsError: Case["act"] = async (world) => {
  const response = await ask(world, true);
  const text = await response.text();
  assert(!text.includes(SUCCESS[world.protocol]) || world.protocol === "responses", text);
  assert(!text.includes("response.completed"), text);
  assertMatch(text, /error|failed/);
  assertEquals(streamedBill(world.protocol, text).cost, undefined, text);
  return { response, expected: { status: 200, ...FAILED } };
};

/** A refusal or failure before anything was answered. */
function fails(stream: boolean, status: number, ending: Ending = "failed"): Case["act"] {
  return async (world) => {
    const response = await ask(world, stream);
    const text = await response.text();
    const native = status === 503 && world.protocol === "messages" ? 529 : status;
    assertEquals(response.status, native, text);
    assertEquals(response.headers.get("x-sluice-cost"), "0");
    return { response, expected: { status: native, ending, ...(ending === "refused" && { attempts: 0 }) } };
  };
}

/** Reads until a text has come, lets something else happen then, and leaves; gives what has come. */
async function leavesAfter(
  response: Response,
  text: string,
  { leave, then }: { leave: AbortController; then?: () => Promise<void> },
): Promise<string> {
  let got = "";
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  while (!got.includes(text)) {
    const read = await reader?.read();
    if (read?.value === undefined) throw new Error(`Expected "${text}" in ${got}`);
    got += decoder.decode(read.value, { stream: true });
  }
  await then?.();
  leave.abort();
  await reader?.cancel().catch(() => {});
  return got;
}

/** The client leaves when it has got so many pieces. */
function leavesIn(pieces: number, expected: (protocol: Protocol, way: Way) => Expected): Case["act"] {
  return async (world) => {
    const leave = new AbortController();
    const response = await ask(world, true, leave.signal);
    await leavesAfter(response, PIECES[pieces - 1]?.trim() ?? "", { leave });
    return { response, expected: expected(world.protocol, world.way) };
  };
}

/** The client leaves when the upstream was asked, before it has said anything. */
function leavesEarly(stream: boolean, expected: Expected): Case["act"] {
  return async (world) => {
    const leave = new AbortController();
    const asked = ask(world, stream, leave.signal).then((response) => response.text());
    await until(() => world.upstream.asked.length === 1);
    // What the gateway is about to do with the upstream's answer may come before or after it hears of the client.
    leave.abort();
    await asked.catch(() => {});
    return { expected };
  };
}

async function until(is: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 10_000; !is();) {
    if (performance.now() > deadline) throw new Error("It did not happen in time");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

const never = new Promise<never>(() => {});

const status = (code: number, type?: string): Case["options"] => ({ protocol, way }) => ({
  says: () => ({ status: code, steps: [JSON.stringify(errorBody(spokenBy(protocol, way), "No", type))] }),
});

const CASES: readonly Case[] = [
  { name: "a whole answer", ways: HTTP, options: answers("told"), act: reads(false, COMPLETE) },
  { name: "a whole answer without usage", ways: HTTP, options: answers("missing"), act: reads(false, COUNTED) },
  { name: "a whole answer with absurd usage", ways: HTTP, options: answers("absurd"), act: reads(false, COUNTED) },
  { name: "a whole answer with a usage of zeros", ways: HTTP, options: answers("zeros"), act: reads(false, COUNTED) },
  { name: "a stream", ways: HTTP, options: answers("told"), act: reads(true, COMPLETE) },
  { name: "a stream without usage", ways: HTTP, options: answers("missing"), act: reads(true, COUNTED) },
  { name: "a stream with absurd usage", ways: HTTP, options: answers("absurd"), act: reads(true, COUNTED) },
  { name: "a stream with a usage of zeros", ways: HTTP, options: answers("zeros"), act: reads(true, COUNTED) },
  ...[false, true].map((stream): Case => ({
    name: stream ? "an embedded stream" : "an embedded whole answer",
    ways: ["embedded"],
    act: reads(stream, { ...COMPLETE, tokens: tokens({ prompt: INPUT, completion: 1 }) }),
  })),
  {
    name: "an answer of the second target",
    ways: HTTP,
    options: (world) => ({ ...status(503)?.(world), then: answers("told")(world).says }) as Partial<WorldOptions>,
    act: reads(true, { ...COMPLETE, attempts: 2 }),
  },
  ...[false, true].flatMap((stream): Case[] => {
    const how = stream ? "streamed" : "whole";
    return [
      { name: `${how}: an upstream that breaks`, ways: HTTP, options: status(500), act: fails(stream, 502) },
      { name: `${how}: an upstream that is busy`, ways: HTTP, options: status(503), act: fails(stream, 503) },
      { name: `${how}: an upstream that has had enough`, ways: HTTP, options: status(429), act: fails(stream, 429) },
      {
        name: `${how}: an upstream that refuses the request`,
        ways: HTTP,
        options: status(400, "invalid_request_error"),
        act: fails(stream, 400),
      },
      {
        name: `${how}: an upstream that never begins`,
        ways: HTTP,
        options: () => ({
          says: () => ({ before: never, steps: [] }),
          timeouts: { first_byte_ms: 60, total_ms: stream ? 10_000 : 60 },
        }),
        act: fails(stream, 504),
      },
      {
        name: `${how}: a client that leaves before the upstream has answered`,
        ways: HTTP,
        options: () => ({ says: () => ({ before: never, steps: [] }) }),
        act: leavesEarly(stream, { status: 499, ...FAILED }),
      },
      {
        name: `${how}: a client that leaves before an answer that is read to its end`,
        ways: HTTP,
        options: (world) => ({
          says: ({ stream }) => ({
            before: world.gone(),
            steps: stepsOf(spokenBy(world.protocol, world.way), stream, "told"),
          }),
          onDisconnect: "drain",
        }),
        act: leavesEarly(stream, { ...COMPLETE, status: 499, ending: "abandoned" }),
      },
    ];
  }),
  {
    name: "an error as the first event",
    ways: HTTP,
    options: ({ protocol, way }) => ({
      says: () => ({ steps: [errorFrame(spokenBy(protocol, way), "busy", "overloaded_error")] }),
    }),
    act: async (world) => {
      const response = await ask(world, true);
      assert(response.status >= 500, await response.text());
      return { response, expected: { status: response.status, ...FAILED } };
    },
  },
  {
    name: "an error within a stream",
    ways: HTTP,
    options: streamsThen(2, ({ spoken }) => [errorFrame(spoken, "broken")]),
    act: readsError,
  },
  { name: "a stream that is cut", ways: HTTP, options: streamsThen(2, () => [], { cut: true }), act: readsError },
  { name: "a stream without an end", ways: HTTP, options: streamsThen(2, () => []), act: readsError },
  {
    name: "a stream that is cut when the usage was told",
    ways: HTTP,
    options: streamsThen(4, ({ ending }) => ending.slice(0, -1), { cut: true }),
    act: readsError,
  },
  {
    name: "a stream that falls silent",
    ways: HTTP,
    options: (world) => ({
      ...streamsThen(2, () => [never])(world),
      timeouts: { first_byte_ms: 5_000, idle_ms: 400 },
    }),
    act: readsError,
  },
  {
    name: "a client that leaves during keep-alives",
    ways: HTTP,
    options: ({ protocol, way }) => ({
      says: () => ({ steps: [...frames(spokenBy(protocol, way), PIECES, "told").opening.slice(0, 1), never] }),
      config: { keep_alive_seconds: 1 },
    }),
    act: async (world) => {
      const leave = new AbortController();
      const response = await ask(world, true, leave.signal);
      await leavesAfter(response, world.protocol === "messages" ? "ping" : "keep-alive", { leave });
      await world.upstream.asked[0]?.gone;
      return { response, expected: { status: 499, ...FAILED } };
    },
  },
  {
    name: "a client that leaves after the first piece",
    ways: HTTP,
    options: streamsThen(1, () => [never]),
    act: leavesIn(1, (protocol, way) => left(protocol, way, 1)),
  },
  {
    name: "a client that leaves in mid-stream",
    ways: HTTP,
    options: streamsThen(3, () => [never]),
    act: leavesIn(3, (protocol, way) => left(protocol, way, 3)),
  },
  {
    name: "a client that leaves in mid-stream, and a model that goes on",
    ways: HTTP,
    options: (world) => ({
      ...streamsThen(2, ({ pieces, ending, gone }) => [gone(), ...pieces, ...ending])(world),
      onDisconnect: "drain",
    }),
    act: leavesIn(2, () => ({ ...COMPLETE, ending: "abandoned" })),
  },
  {
    name: "a client that leaves in mid-stream, and a model that goes on and fails",
    ways: HTTP,
    options: (world) => ({ ...streamsThen(2, ({ gone }) => [gone()], { cut: true })(world), onDisconnect: "drain" }),
    act: leavesIn(2, () => ({ status: 200, ...FAILED })),
  },
  {
    name: "a client that leaves an embedded model in mid-stream",
    ways: ["embedded"],
    act: async (world) => {
      const leave = new AbortController();
      const body = { model: "acme/one", stream: true, messages: [{ role: "user", content: "one two ".repeat(9_000) }] };
      const asked = world.protocol === "responses"
        ? { ...body, messages: undefined, input: "one two ".repeat(9_000) }
        : {
          ...body,
          max_tokens: 20_000,
        };
      const response = await world.gateway.ask(world.protocol, asked, { signal: leave.signal });
      await leavesAfter(response, "two", { leave });
      const { tokens: billed } = await world.entry();
      assert(billed.completion >= 1 && billed.completion < 18_000, `${billed.completion}`);
      const prompt = 18_001 + 6;
      assertEquals(billed.prompt, prompt);
      return { response, expected: { status: 200, ending: "abandoned", tokens: billed, source: "counted" } };
    },
  },
];

function check(
  entry: KeptEntry,
  { world, expected, about }: { world: World; expected: Expected; about: string },
): void {
  const { protocol, way } = world;
  const attempts = expected.attempts ?? 1;
  const billed = expected.tokens ?? tokens({});
  assertEquals(chargeOf(entry), {
    status: expected.status,
    ending: expected.ending,
    tokens: billed,
    source: expected.source ?? "none",
    cost: priceOf(billed),
    attempts,
  }, about);
  const upstream = attempts === 0 ? "" : way === "embedded" ? "embedded" : attempts === 1 ? "one" : "two";
  assertEquals([entry.endpoint, entry.model, entry.upstream, entry.images], [protocol, "acme/one", upstream, 0], about);
  assertEquals([entry.keyId, entry.group], [world.gateway.key.id, "default"], about);
  assertEquals(entry.sheet === undefined, expected.tokens === undefined, about);
  assertEquals(entry.overrun, 0n, about);
  assert(entry.held >= entry.cost && entry.held > 0n, about);
  assert(expected.tokens === undefined || entry.firstMs !== undefined, `${about}: when it began is not told`);
}

/** Tells when the client of the one request has gone, and what a gateway is to be started with for that. */
function departure(): Pick<Planned, "gone"> & { gateway: GatewayOptions } {
  const { promise, resolve } = Promise.withResolvers<void>();
  // Of a whole answer the gateway itself asks a little later whether its client is there.
  return {
    gone: () => promise.then(() => othersTurns()),
    gateway: { arriving: ({ signal }) => signal.addEventListener("abort", () => resolve(), { once: true }) },
  };
}

for (const { name, ways, options, act } of CASES) {
  Deno.test(`${name}: one entry with its exact charge, and nothing stays taken`, async () => {
    await Promise.all(ways.flatMap((way) =>
      PROTOCOLS.map(async (protocol) => {
        const about = `${protocol} ${way}`;
        const { gone, gateway } = departure();
        await using world = startWorld({ protocol, way, gateway, ...options?.({ protocol, way, gone }) });
        const { response, expected } = await act(world);
        const entry = await world.entry();
        if (response !== undefined) assertEquals(response.headers.get("x-request-id"), `req_${entry.id}`, about);
        check(entry, { world, expected, about });
        await world.assertSettled(entry, about);
      })
    ));
  });
}

Deno.test("a client that leaves while its complete answer is being entered pays for all of it, once", async () => {
  for (const way of HTTP) {
    for (const protocol of PROTOCOLS) {
      for (const onDisconnect of ["cancel", "drain"] as const) {
        const about = `${protocol} ${way} ${onDisconnect}`;
        const { store, arrived, open } = gatedStore();
        const { gone, gateway } = departure();
        // What is read together with the ending waits for the entry with it.
        const read = Promise.withResolvers<void>();
        await using world = startWorld({
          protocol,
          way,
          onDisconnect,
          ...streamsThen(4, ({ ending }) => [read.promise, ...ending])({ protocol, way, gone }),
          gateway: { ...gateway, store },
        });
        const leave = new AbortController();
        const response = await ask(world, true, leave.signal);
        const then = () => {
          read.resolve();
          return soon(`${about}: the entry`, arrived);
        };
        const got = await leavesAfter(response, "theta", { leave, then });
        await soon(`${about}: the client's leaving`, gone());
        open();
        const entry = await world.entry();
        assert(!got.includes(SUCCESS[protocol]), about);
        assertEquals(got.includes("sluice_cost"), false, about);
        check(entry, { world, expected: { ...COMPLETE, ending: entry.ending }, about });
        await world.assertSettled(entry, about);
      }
    }
  }
});

Deno.test("nothing that ends an answer goes out before its entry is there", async () => {
  for (const way of ALL) {
    for (const protocol of PROTOCOLS) {
      for (const stream of [false, true]) {
        const about = `${protocol} ${way} ${stream}`;
        const { store, arrived, open } = gatedStore();
        await using world = startWorld({
          protocol,
          way,
          gateway: { store },
          ...answers("told")({ protocol, way }),
        });
        let got = "";
        let answered = false;
        const reading = ask(world, stream).then(async (response) => {
          answered = true;
          for await (const bytes of response.body ?? []) got += new TextDecoder().decode(bytes);
        });
        await soon(`${about}: the entry`, arrived);
        await othersTurns();
        assertEquals([answered && !stream, got.includes(SUCCESS[protocol])], [false, false], about);
        for (const word of ['"usage":{', "sluice_cost", "[DONE]"]) {
          // The beginning of a message tells its input.
          const later = protocol === "messages" ? got.slice(got.indexOf("content_block_start")) : got;
          assert(!later.includes(word), `${about}: ${word} in ${got}`);
        }
        open();
        await reading;
        assert(!stream || got.includes(SUCCESS[protocol]), about);
        const { cost } = await world.entry();
        assert(!stream || got.includes(`"sluice_cost":"${usd(cost)}"`), about);
      }
    }
  }
});

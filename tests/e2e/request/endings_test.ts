import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import type { Ending } from "../../../lib/store/ledger.ts";
import { errorBody, errorFrame, PROTOCOLS, SUCCESS } from "../../upstream/replies.ts";
import { assertSameBill, streamedBill, wholeBill } from "./bills.ts";
import {
  answers,
  ask,
  checkEntry,
  COMPLETE,
  disconnectsAfter,
  disconnectWatch,
  type Expected,
  heldBy,
  HTTP,
  PIECES,
  type Planned,
  stepsOf,
  streamsThen,
} from "./exchange.ts";
import { frames, REPORTED } from "../../upstream/frames.ts";
import { spokenBy, startWorld, tokens, type Way, type World, type WorldOptions } from "./world.ts";
import { until } from "../../support/soon.ts";

const counter = await loadTokenCounter();
/** o200k tokens of a "Hello" prompt, in any protocol: 1, 3 for the message, and 3 for the answer's beginning. */
const INPUT = 7;

/** One ending of a request, in every protocol and every way it is possible in. */
interface Case {
  name: string;
  ways: readonly Way[];
  options?: (world: Planned) => Partial<WorldOptions>;
  /** Plays the client, and returns the expected entry. The response is absent if the client got none. */
  act(world: World): Promise<{ response?: Response; expected: Expected }>;
}

const FAILED: Pick<Expected, "ending"> = { ending: "failed" };
const COUNTED: Expected = { ...COMPLETE, tokens: tokens({ prompt: INPUT, completion: counted(4) }), source: "counted" };

function counted(pieces: number): number {
  return counter.count(PIECES.slice(0, pieces).join(""));
}

/** Charge for a client that disconnected after this many pieces. */
function disconnected(protocol: Protocol, way: Way, pieces: number): Expected {
  // Only this protocol reports its input at the beginning.
  const input = spokenBy(protocol, way) === "messages"
    ? { prompt: REPORTED.prompt, input_cache_read: REPORTED.input_cache_read }
    : { prompt: INPUT };
  return {
    status: 200,
    ending: "client_disconnected",
    tokens: tokens({ ...input, completion: counted(pieces + heldBy(protocol, way)) }),
    source: "counted",
  };
}

/** A whole exchange: the client reads to the end and sees the same bill as the entry. */
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

/** A stream that ends with an error: nothing is charged, and the client sees no bill. */
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

/** The client disconnects after this number of pieces. */
function disconnectsIn(pieces: number, expected: (protocol: Protocol, way: Way) => Expected): Case["act"] {
  return async (world) => {
    const disconnect = new AbortController();
    const response = await ask(world, true, disconnect.signal);
    await disconnectsAfter(response, PIECES[pieces - 1]?.trim() ?? "", { disconnect });
    return { response, expected: expected(world.protocol, world.way) };
  };
}

/** The client disconnects after the upstream was called, before its first byte. */
function disconnectsEarly(stream: boolean, expected: Expected): Case["act"] {
  return async (world) => {
    const disconnect = new AbortController();
    const pending = ask(world, stream, disconnect.signal).then((response) => response.text());
    await until("the requests", () => world.upstream.requests.length === 1);
    // The upstream's answer may be processed before or after the disconnect is noticed.
    disconnect.abort();
    await pending.catch(() => {});
    return { expected };
  };
}

const KEEP_ALIVE = { chat: "keep-alive", responses: "keep-alive", messages: "ping", gemini: "\n\n" } as const;

const never = new Promise<never>(() => {});

const status = (code: number, type?: string): Case["options"] => ({ protocol, way }) => ({
  says: () => ({ status: code, steps: [JSON.stringify(errorBody(spokenBy(protocol, way), "No", type))] }),
});

const CASES: readonly Case[] = [
  { name: "a whole answer", ways: HTTP, options: answers("reported"), act: reads(false, COMPLETE) },
  { name: "a whole answer without usage", ways: HTTP, options: answers("missing"), act: reads(false, COUNTED) },
  { name: "a whole answer with absurd usage", ways: HTTP, options: answers("absurd"), act: reads(false, COUNTED) },
  { name: "a whole answer with a usage of zeros", ways: HTTP, options: answers("zeros"), act: reads(false, COUNTED) },
  { name: "a stream", ways: HTTP, options: answers("reported"), act: reads(true, COMPLETE) },
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
    options: (world) => ({ ...status(503)?.(world), then: answers("reported")(world).says }) as Partial<WorldOptions>,
    act: reads(true, { ...COMPLETE, attempts: 2 }),
  },
  ...[false, true].flatMap((stream): Case[] => {
    const how = stream ? "streamed" : "whole";
    return [
      { name: `${how}: an upstream that breaks`, ways: HTTP, options: status(500), act: fails(stream, 502) },
      { name: `${how}: an upstream that is busy`, ways: HTTP, options: status(503), act: fails(stream, 503) },
      { name: `${how}: an upstream at its limit`, ways: HTTP, options: status(429), act: fails(stream, 429) },
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
        name: `${how}: a client that disconnects before the upstream has answered`,
        ways: HTTP,
        options: () => ({ says: () => ({ before: never, steps: [] }) }),
        act: disconnectsEarly(stream, { status: 499, ...FAILED }),
      },
      {
        name: `${how}: a client that disconnects before an answer that is read to its end`,
        ways: HTTP,
        options: (world) => ({
          says: ({ stream }) => ({
            before: world.gone(),
            steps: stepsOf(spokenBy(world.protocol, world.way), stream, "reported"),
          }),
          onDisconnect: "drain",
        }),
        act: disconnectsEarly(stream, { ...COMPLETE, status: 499, ending: "client_disconnected" }),
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
    name: "a stream that is cut after its usage",
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
    name: "a client that disconnects during keep-alives",
    ways: HTTP,
    options: ({ protocol, way }) => ({
      says: () => ({ steps: [...frames(spokenBy(protocol, way), PIECES, "reported").opening.slice(0, 1), never] }),
      config: { keep_alive_seconds: 1 },
    }),
    act: async (world) => {
      const disconnect = new AbortController();
      const response = await ask(world, true, disconnect.signal);
      await disconnectsAfter(response, KEEP_ALIVE[world.protocol], { disconnect });
      await world.upstream.requests[0]?.gone;
      return { response, expected: { status: 499, ...FAILED } };
    },
  },
  {
    name: "a client that disconnects after the first piece",
    ways: HTTP,
    options: streamsThen(1, () => [never]),
    act: disconnectsIn(1, (protocol, way) => disconnected(protocol, way, 1)),
  },
  {
    name: "a client that disconnects during the stream",
    ways: HTTP,
    options: streamsThen(3, () => [never]),
    act: disconnectsIn(3, (protocol, way) => disconnected(protocol, way, 3)),
  },
  {
    name: "a client that disconnects during the stream, and an upstream that continues",
    ways: HTTP,
    options: (world) => ({
      ...streamsThen(2, ({ pieces, ending, gone }) => [gone(), ...pieces, ...ending])(world),
      onDisconnect: "drain",
    }),
    act: disconnectsIn(2, () => ({ ...COMPLETE, ending: "client_disconnected" })),
  },
  {
    name: "a client that disconnects during the stream, and an upstream that continues and fails",
    ways: HTTP,
    options: (world) => ({ ...streamsThen(2, ({ gone }) => [gone()], { cut: true })(world), onDisconnect: "drain" }),
    act: disconnectsIn(2, (protocol, way) => disconnected(protocol, way, 2)),
  },
  {
    name: "a client that disconnects from an embedded model's stream",
    ways: ["embedded"],
    act: async (world) => {
      const disconnect = new AbortController();
      const body = { model: "acme/one", stream: true, messages: [{ role: "user", content: "one two ".repeat(9_000) }] };
      const requested = world.protocol === "responses"
        ? { ...body, messages: undefined, input: "one two ".repeat(9_000) }
        : world.protocol === "gemini"
        ? { model: "acme/one", stream: true, contents: [{ role: "user", parts: [{ text: "one two ".repeat(9_000) }] }] }
        : {
          ...body,
          max_tokens: 20_000,
        };
      const response = await world.gateway.ask(world.protocol, requested, { signal: disconnect.signal });
      await disconnectsAfter(response, "two", { disconnect });
      const { tokens: billed } = await world.entry();
      assert(billed.completion >= 1 && billed.completion < 18_000, `${billed.completion}`);
      const prompt = 18_001 + 6;
      assertEquals(billed.prompt, prompt);
      return { response, expected: { status: 200, ending: "client_disconnected", tokens: billed, source: "counted" } };
    },
  },
];

for (const { name, ways, options, act } of CASES) {
  Deno.test(`${name}: one entry with its exact charge, and nothing stays reserved`, async () => {
    await Promise.all(ways.flatMap((way) =>
      PROTOCOLS.map(async (protocol) => {
        const about = `${protocol} ${way}`;
        const { gone, gateway } = disconnectWatch();
        await using world = startWorld({ protocol, way, gateway, ...options?.({ protocol, way, gone }) });
        const { response, expected } = await act(world);
        const entry = await world.entry();
        if (response !== undefined) assertEquals(response.headers.get("x-request-id"), `req_${entry.id}`, about);
        checkEntry(entry, { world, expected, about });
        await world.assertSettled(entry, about);
      })
    ));
  });
}

import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { type SimulatedTime, simulateTime } from "../../support/simulated_time.ts";
import { prompt, PROTOCOLS, SUCCESS } from "../../upstream/replies.ts";
import { frames, REPORTED } from "../../upstream/frames.ts";
import type { ScriptedAnswer, Step } from "../../upstream/mod.ts";
import { chargeOf, priceOf, spokenBy, startWorld, tokens, type Way, type World } from "./world.ts";
import { skipInQuick } from "../../support/skip.ts";

const counter = await loadTokenCounter();

/** More than the system buffers for a client that does not read. */
const PIECES = Array.from({ length: 180 }, (_, index) => `${index} ${"telecommunications ".repeat(1_800)}`);
const EMBEDDED = "one two three ".repeat(14_000);

/** The text in a stream of any protocol. */
function textIn(stream: string): string {
  const events = stream.split("\n").filter((line) => line.startsWith("data: {")).map((line) =>
    JSON.parse(line.slice(6))
  );
  return events.map((event) => {
    if (event.type !== undefined && !/delta$/.test(event.type)) return "";
    if (typeof event.delta === "string") return event.delta;
    return event.delta?.text ?? event.choices?.[0]?.delta.content ??
      event.candidates?.[0].content.parts[0].text ?? "";
  }).join("");
}

function says(protocol: Protocol, way: Way): () => ScriptedAnswer {
  const { opening, pieces, ending } = frames(spokenBy(protocol, way), PIECES, "reported");
  return () => ({ steps: [...opening, ...pieces, ...ending] });
}

/** Asserts that exactly the streamed text and the prompt are charged, and that there is some text. */
async function assertSentCharged(
  world: World,
  { content, stream, most }: { content: string; stream: string; most: number },
): Promise<void> {
  const { protocol, way } = world;
  const entry = await world.entry();
  await world.assertSettled(entry, protocol);
  const text = textIn(stream);
  assert(text.length > 10_000 && text.length < most, `${text.length}`);
  const reported = way !== "embedded" && spokenBy(protocol, way) === "messages";
  const input = reported
    ? { prompt: REPORTED.prompt, input_cache_read: REPORTED.input_cache_read }
    : { prompt: counter.count(content) + 6 };
  const charged = tokens({ ...input, completion: counter.count(text) });
  assertEquals(chargeOf(entry), {
    status: 200,
    ending: "client_disconnected",
    tokens: charged,
    source: "counted",
    cost: priceOf(charged),
    attempts: 1,
  }, protocol);
}

/** Waits until the upstream sends no more, because all buffers on the way to the client are full. */
async function rest({ upstream: { requests } }: World, time: SimulatedTime): Promise<void> {
  for (let before = 0;;) {
    await time.settle(300);
    const sent = requests[0]?.sent ?? 0;
    if (sent > 0 && sent === before) return;
    before = sent;
  }
}

const one = skipInQuick("Unread streams in every protocol");
for (const [index, way] of (["relayed", "translated", "embedded"] as const).entries()) {
  Deno.test(`${way}: an unread stream ends with an error, and what was sent is charged`, async () => {
    for (const protocol of one ? PROTOCOLS.slice(index, index + 1) : PROTOCOLS) {
      await using world = startWorld({
        protocol,
        way,
        says: says(protocol, way),
        config: { resource_limits: { answer_unread_ms: 150 } },
      });
      const content = way === "embedded" ? EMBEDDED : "Hello";
      const most = protocol === "messages" ? { max_tokens: 5_000_000 } : {};
      const response = await world.gateway.ask(protocol, prompt(protocol, { ...most, stream: true }, content));
      await world.entry();
      const stream = await response.text();
      assert(stream.includes("read nothing"), stream.slice(-500));
      assert(protocol === "responses" || !stream.includes(SUCCESS[protocol]));
      await assertSentCharged(world, {
        content,
        stream,
        most: (way === "embedded" ? EMBEDDED : PIECES.join("")).length,
      });
    }
  });
}

Deno.test("an unread stream is read to its end if its model continues", async () => {
  await using world = startWorld({
    protocol: "chat",
    way: "translated",
    says: says("chat", "translated"),
    onDisconnect: "drain",
    config: { resource_limits: { answer_unread_ms: 150 } },
  });
  const response = await world.gateway.ask("chat", prompt("chat", { stream: true }));
  const entry = await world.entry();
  await world.assertSettled(entry, "drained");
  assertEquals([entry.ending, entry.tokens], ["client_disconnected", tokens(REPORTED)]);
  assert((await response.text()).includes("read nothing"));
});

Deno.test("a client that reads too slowly pays for what was sent to it", async () => {
  for (const way of one ? ["translated"] as const : ["relayed", "translated"] as const) {
    await using world = startWorld({ protocol: "chat", way, says: says("chat", way), timeouts: { total_ms: 20_000 } });
    let reader: ReadableStreamDefaultReader<string> | undefined;
    let stream = "";
    {
      using time = simulateTime(0);
      const response = await world.gateway.ask("chat", prompt("chat", { stream: true }));
      reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      stream += (await reader?.read())?.value;
      await rest(world, time);
      await time.pass(20_100);
    }
    for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) stream += read.value;
    assert(stream.includes("read too slowly") && !stream.includes("[DONE]"), stream.slice(-500));
    await assertSentCharged(world, { content: "Hello", stream, most: PIECES.join("").length });
  }
});

Deno.test("an answer that breaks off is charged for the sent part, even if its client has stopped reading", async () => {
  for (const [seconds, pays] of [[5, true], [0.5, false]] as const) {
    for (const way of one ? ["relayed"] as const : ["relayed", "translated"] as const) {
      const protocol = "chat";
      const { opening, pieces } = frames(spokenBy(protocol, way), PIECES, "reported");
      await using world = startWorld({ protocol, way, says: () => ({ steps: [...opening, ...pieces], cut: true }) });
      let reader: ReadableStreamDefaultReader<string> | undefined;
      let stream = "";
      {
        using time = simulateTime(0);
        const response = await world.gateway.ask(protocol, prompt(protocol, { stream: true }));
        reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
        stream += (await reader?.read())?.value;
        await rest(world, time);
        await time.pass(seconds * 1_000);
      }
      for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
        stream += read.value;
      }
      if (pays) await assertSentCharged(world, { content: "Hello", stream, most: PIECES.join("").length + 1 });
      else assertEquals((await world.entry()).ending, "failed");
    }
  }
});

Deno.test("an answer whose upstream takes too long is free, even if the client reads", async () => {
  await Promise.all((["relayed", "translated"] as const).map(async (way) => {
    const { opening, pieces } = frames(spokenBy("chat", way), Array(20).fill("slow "), "reported");
    const pauses: Step[] = [];
    const steps = function* () {
      for (const frame of [...opening, ...pieces]) {
        const pause = new Promise((resolve) => setTimeout(resolve, 150));
        pauses.push(pause);
        yield pause;
        yield frame;
      }
    };
    await using world = startWorld({
      protocol: "chat",
      way,
      says: () => ({ steps: steps() }),
      timeouts: { total_ms: 1_000 },
    });
    const stream = await (await world.gateway.ask("chat", prompt("chat", { stream: true }))).text();
    assert(stream.includes("no whole answer within 1 s"), stream.slice(-500));
    const entry = await world.entry();
    await world.assertSettled(entry, way);
    assertEquals([entry.ending, entry.cost], ["failed", 0n], way);
    await Promise.all(pauses);
  }));
});

Deno.test("a slow client that reads now and then gets its whole stream", async () => {
  await using world = startWorld({
    protocol: "chat",
    way: "relayed",
    says: says("chat", "relayed"),
    config: { resource_limits: { answer_unread_ms: 400 } },
  });
  using time = simulateTime(0);
  const response = await world.gateway.ask("chat", prompt("chat", { stream: true }));
  let stream = "";
  const decoder = new TextDecoder();
  let pauses = 0;
  for await (const bytes of response.body ?? []) {
    // All pauses together are shorter than three times the limit for unread answers.
    if (stream.length > pauses * 1_500_000) {
      pauses++;
      await time.pass(300);
    }
    stream += decoder.decode(bytes, { stream: true });
  }
  assert(pauses > 2 && stream.includes("[DONE]"), stream.slice(-200));
  const entry = await world.entry();
  assertEquals([entry.ending, entry.tokens], ["end", tokens(REPORTED)]);
  await world.assertSettled(entry, "slow");
});

/** Pauses once, after the first frame. */
function* slowly([first = "", ...rest]: readonly string[]): Generator<Step> {
  yield first;
  yield new Promise((resolve) => setTimeout(resolve, 1_500));
  yield* rest;
}

Deno.test("a client that waits for its model is not treated as a client that stopped reading", async () => {
  for (const way of ["relayed", "translated"] as const) {
    const { opening, pieces, ending } = frames(spokenBy("chat", way), ["one ", "two"], "reported");
    await using world = startWorld({
      protocol: "chat",
      way,
      says: () => ({ steps: slowly([...opening, ...pieces, ...ending]) }),
      config: { resource_limits: { answer_unread_ms: 1_000 } },
    });
    const response = await world.gateway.ask("chat", prompt("chat", { stream: true }));
    const text = await response.text();
    assert(text.includes("[DONE]"), text);
    const entry = await world.entry();
    assertEquals([entry.ending, entry.tokens], ["end", tokens(REPORTED)]);
  }
});

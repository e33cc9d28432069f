import { assertEquals, assertThrows } from "@std/assert";
import type { ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { StreamMeter } from "../../lib/request/stream_meter.ts";
import type { Step } from "../../lib/upstreams/upstream.ts";
import { meteredStream } from "./metered_stream.ts";

const OPEN: ReplyEvent = { type: "open", index: 0, block: { type: "text" } };
const FINISH: ReplyEvent = { type: "finish", reason: "end", usage: { prompt: 7 } };
const BROKEN = new GatewayError("upstream", "Broken");

function says(text: string): Step {
  return { frames: [{ data: text }], events: [{ type: "delta", index: 0, text }], contentFrames: 1 };
}

const SAID: Step = { frames: [{ data: "open" }], events: [OPEN], contentFrames: 1 };

Deno.test("after a disconnect, only sent output is charged, however the pending read ends", async () => {
  const comes: [name: string, come: (stream: StreamMeter) => unknown][] = [
    ["nothing", (stream) => stream.take(undefined)],
    ["more", (stream) => stream.take(says(" three four"))],
    ["the end", (stream) => stream.take({ frames: [], events: [FINISH] })],
    ["an error", (stream) => stream.take({ frames: [], events: [{ type: "error", error: BROKEN }] })],
    ["a failure", (stream) => stream.fail(BROKEN)],
  ];
  for (const [name, come] of comes) {
    const { pass, stream, entry } = await meteredStream();
    await pass(SAID);
    await pass(says("one two"));
    stream.disconnected(false);
    await come(stream);
    assertEquals(await entry(), ["client_disconnected", 200, 7, 2], name);
  }
});

Deno.test("output that was read but not sent before a disconnect is not charged", async () => {
  const { pass, stream, entry } = await meteredStream();
  await pass(SAID);
  await pass(says("one two"));
  await stream.take(says(" three four"));
  stream.disconnected(false);
  assertEquals(await entry(), ["client_disconnected", 200, 7, 2]);
});

Deno.test("a client that disconnects when its answer is complete and still being counted pays for all of it", async () => {
  for (const drain of [false, true]) {
    const counting = Promise.withResolvers<number>();
    const { pass, stream, entry } = await meteredStream({ countInput: () => counting.promise });
    // Usage known at the beginning would be charged at once.
    await pass({ ...SAID, events: [{ type: "start", usage: { prompt: 7 } }, OPEN] });
    await pass(says("one two"));
    const finished = stream.take({ ...says(" three"), events: [...says(" three").events, { ...FINISH, usage: {} }] });
    stream.disconnected(drain);
    await new Promise((resolve) => setTimeout(resolve, 10));
    counting.resolve(9);
    await finished;
    assertEquals(await entry(), ["client_disconnected", 200, 9, 3]);
  }
});

Deno.test("an answer drained after a disconnect is charged completely, by counted tokens if it reports no usage", async () => {
  const { pass, stream, entry } = await meteredStream();
  await pass(SAID);
  await pass(says("one two"));
  stream.disconnected(true);
  await pass(says(" three four"));
  await pass({ frames: [], events: [FINISH] });
  assertEquals(await entry(), ["client_disconnected", 200, 7, 4]);
});

Deno.test("an error within the answer is entered before it is sent, and is the only failure", async () => {
  const { pass, stream, meter, failures, entry } = await meteredStream();
  await pass(SAID);
  const step = await stream.take({ frames: [{ data: "error" }], events: [{ type: "error", error: BROKEN }] });
  assertEquals(step?.frames, [{ data: "error" }]);
  assertEquals(meter.ended, true);
  assertEquals(await stream.take(undefined), undefined);
  assertEquals(await entry(), ["failed", 200, 0, 0]);
  assertEquals(failures, [BROKEN]);
});

Deno.test("an error instead of the first event is the failure that is entered", async () => {
  const { pass, stream, failures, entry } = await meteredStream();
  await pass({ frames: [{ data: "start" }], events: [{ type: "start" }] });
  await pass({ frames: [{ data: "error" }], events: [{ type: "error", error: BROKEN }] });
  assertEquals(await stream.take(undefined), undefined);
  assertEquals(await entry(), ["failed", 200, 0, 0]);
  assertEquals(failures, [BROKEN]);
});

Deno.test("an answer that reaches a limit of the gateway's is charged by all that came before it", async () => {
  const { pass, stream, meter, entry } = await meteredStream();
  await pass(SAID);
  await pass(says("one two"));
  const more = says(" three four");
  const error = new GatewayError("upstream", "Too many", { fault: "oversized" });
  const frames = [...more.frames, { data: "error" }];
  const step = await stream.take({ frames, events: [...more.events, { type: "error", error }] });
  assertEquals(step?.frames, frames);
  assertEquals(meter.ended, true);
  assertEquals(await entry(), ["length", 200, 7, 4]);
});

Deno.test("output that cannot be counted is not charged, and the request still ends", async () => {
  for (const disconnects of [false, true]) {
    const { pass, stream, entry } = await meteredStream({ countInput: () => Promise.reject(new Error("No")) });
    await pass(SAID);
    await pass(says("one"));
    if (disconnects) stream.disconnected(false);
    else {
      const finished = stream.take({ frames: [], events: [{ ...FINISH, usage: {} }] });
      await Promise.resolve(finished).catch(() => stream.fail(BROKEN));
    }
    assertEquals(await entry(), ["failed", 200, 0, 0]);
  }
});

Deno.test("a stream that the gateway itself cuts is not charged", async () => {
  const { pass, stream, interrupt, entry } = await meteredStream();
  await pass(SAID);
  await pass(says("one"));
  interrupt();
  stream.disconnected(false);
  assertEquals(await entry(), ["failed", 200, 0, 0]);
});

Deno.test("a flood of frames with usage is passed on but for the last, and one of other frames after it breaks the answer", async () => {
  const usage = { data: '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}' };
  const step = (data: string, times: number): Step => ({
    frames: Array.from({ length: times }, () => ({ data })),
    events: [],
  });
  const { pass, stream } = await meteredStream();
  await pass(SAID);
  assertEquals((await stream.take(step(usage.data, 1_024)))?.frames.length, 0);
  assertEquals((await stream.take(step(usage.data, 10)))?.frames.length, 1_033);
  assertEquals((await stream.take(step("{}", 1_023)))?.frames.length, 0);
  assertThrows(() => stream.take(step("{}", 1)), GatewayError, "too much data follows its usage");
  stream.fail(BROKEN);
  for (const data of [usage.data.padEnd(2_000_000), "{}".padEnd(2_000_000)]) {
    const { pass, stream } = await meteredStream();
    await pass(SAID);
    await stream.take({ frames: [usage], events: [] });
    assertThrows(() => stream.take(step(data, 1)), GatewayError, "too much data follows its usage");
    stream.fail(BROKEN);
  }
});

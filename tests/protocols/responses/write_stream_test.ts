import { assertEquals } from "@std/assert";
import { eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Prompt, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { accumulate } from "./accumulate.ts";
import { inPieces, REPLIES, responseContextOf } from "./replies.ts";

/** The frames written for these events, after a check of their order. */
function write(events: ReplyEvent[], prompt: Partial<Prompt> = {}): Frame[] {
  const grammar = checkGrammar();
  const writer = responses.writer(responseContextOf(prompt));
  const frames = events.flatMap((event) => grammar.push(event)).flatMap((event) => writer.push(event));
  return [...frames, ...writer.end()];
}

Deno.test("a stream equals the response of writeReply(), with text split anywhere", () => {
  for (const { name, reply, prompt } of REPLIES) {
    const whole = responses.writeReply(reply, responseContextOf(prompt));
    for (const events of [eventsOf(reply), inPieces(eventsOf(reply))]) {
      const { built, last, error } = accumulate(write(events, prompt));
      assertEquals(last, whole, name);
      assertEquals(built, whole, name);
      assertEquals(error, undefined, name);
    }
  }
});

Deno.test("every frame has the name of its event and no line break", () => {
  const frames = write(eventsOf({ blocks: [{ type: "text", text: "a\nb\r\n\u2028" }], finish: "end", usage: {} }));
  for (const { data } of frames) assertEquals(/[\r\n]/.test(data), false);
  assertEquals(frames.filter(({ event }) => event === undefined), [{ data: "[DONE]" }]);
});

Deno.test("writer() writes frames for each event at once", () => {
  const writer = responses.writer(responseContextOf());
  const counts = eventsOf({ blocks: [{ type: "text", text: "Hi" }], finish: "end", usage: {} })
    .map((event) => writer.push(event).length);
  // start: created, in_progress; open; delta: item, part, delta; close; finish: two dones, item, completed, [DONE]
  assertEquals(counts, [2, 0, 3, 0, 5]);
  assertEquals(writer.end(), []);
});

const BROKEN = new GatewayError("overloaded", "The model is busy", { code: "overloaded" });

Deno.test("an early error still makes a complete stream", () => {
  const cases: [error: GatewayError, code: string][] = [
    [BROKEN, "overloaded"],
    [new GatewayError("exhausted", "Too many"), "rate_limit_exceeded"],
    [new GatewayError("invalid", "Bad"), "invalid_prompt"],
    [new GatewayError("internal", "Bad"), "internal_error"],
  ];
  for (const [error, code] of cases) {
    const { last, types } = accumulate(write([{ type: "error", error }]));
    assertEquals(types, ["response.created", "response.in_progress", "error", "response.failed"]);
    assertEquals(last.error, { code, message: error.message });
    assertEquals(last.output, []);
  }
});

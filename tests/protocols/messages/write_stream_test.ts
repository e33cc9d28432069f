import { assertEquals } from "@std/assert";
import { eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Prompt, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { accumulate } from "./accumulate.ts";
import { REPLIES, responseContextOf } from "./replies.ts";

Deno.test("a stream equals the message of writeReply()", () => {
  for (const { name, reply, prompt } of REPLIES) {
    const whole = messages.writeReply(reply, responseContextOf(prompt));
    for (const size of [Infinity, 1]) {
      assertEquals(accumulate(write(inPieces(eventsOf(reply), size), prompt)), whole, `${name}, pieces of ${size}`);
    }
  }
});

Deno.test("every kind of reasoning has its frames, without gaps in the indices", () => {
  const signature = { issuer: "anthropic", value: "c2ln" };
  const cases: [string, ReplyEvent[], Partial<Prompt> | undefined, string[]][] = [
    ["unsigned", reasoning({}, "t"), undefined, ["start thinking", "thinking_delta", "signature_delta", "stop"]],
    ["hidden", reasoning({ hidden: true }, "", signature), undefined, ["start thinking", "signature_delta", "stop"]],
    ["hidden and unsigned", reasoning({ hidden: true }, ""), undefined, []],
    ["redacted", reasoning({ hidden: true }, "", { ...signature, id: "redacted" }), undefined, [
      "start redacted_thinking",
      "stop",
    ]],
    ["omitted", reasoning({}, "t", signature), { reasoning: { display: "omitted" } }, [
      "start thinking",
      "signature_delta",
      "stop",
    ]],
    ["omitted and unsigned", reasoning({}, "t"), { reasoning: { display: "omitted" } }, []],
  ];
  for (const [name, events, prompt, expected] of cases) {
    const frames = write(
      [
        { type: "start" },
        ...events,
        { type: "open", index: 1, block: { type: "text" } },
        { type: "delta", index: 1, text: "a" },
        { type: "close", index: 1 },
        { type: "finish", reason: "end", usage: {} },
      ],
      prompt,
    );
    const outline = frames.slice(2, -2).map(({ data }) => outlineOf(JSON.parse(data)));
    assertEquals(outline, [...expected, "start text", "text_delta", "stop"], name);
    const textIndex = expected.length === 0 ? 0 : 1;
    assertEquals(JSON.parse(frames.at(-3)?.data ?? "").index, textIndex, name);
  }
});

Deno.test("a finished stream ends with message_stop", () => {
  const writer = messages.writer(responseContextOf());
  const frames = eventsOf({ blocks: [], finish: "end", usage: {} }).flatMap((event) => writer.push(event));
  assertEquals(frames.at(-1)?.event, "message_stop");
  assertEquals(writer.push({ type: "error", error: new GatewayError("internal", "late") }), []);
  assertEquals(writer.end(), []);
});

Deno.test("no frame holds a line break", () => {
  const reply = { blocks: [{ type: "text" as const, text: "a\nb\r\n\u2028c" }], finish: "end" as const, usage: {} };
  for (const { data } of write(eventsOf(reply))) assertEquals(/[\r\n]/.test(data), false, data);
});

function write(events: ReplyEvent[], prompt?: Partial<Prompt>, ending: "whole" | "cut" = "whole"): Frame[] {
  const writer = messages.writer(responseContextOf(prompt));
  const frames = checked(events).flatMap((event) => writer.push(event));
  const rest = writer.end();
  assertEquals(rest.length, ending === "cut" ? 1 : 0);
  return [...frames, ...rest];
}

/** The events, if they obey the grammar as far as they exist. */
function checked(events: ReplyEvent[]): ReplyEvent[] {
  const grammar = checkGrammar();
  return events.flatMap((event) => grammar.push(event));
}

/** The same events with deltas of at most `size` UTF-16 units, so that surrogate pairs are split, too. */
function inPieces(events: ReplyEvent[], size: number): ReplyEvent[] {
  if (size === Infinity) return events;
  return events.flatMap((event): ReplyEvent[] => {
    if (event.type !== "delta") return [event];
    const count = Math.ceil(event.text.length / size);
    return Array.from({ length: count }, (_, at) => ({
      ...event,
      text: event.text.slice(at * size, (at + 1) * size),
    }));
  });
}

function reasoning(
  block: { hidden?: boolean },
  text: string,
  signature?: { issuer: string; value: string; id?: string },
): ReplyEvent[] {
  return [
    { type: "open", index: 0, block: { type: "reasoning", ...block } },
    ...(text === "" ? [] : [{ type: "delta" as const, index: 0, text }]),
    { type: "close", index: 0, ...(signature !== undefined && { signature }) },
  ];
}

function outlineOf(
  { type, content_block, delta }: { type: string; content_block?: { type: string }; delta?: { type: string } },
): string {
  if (type === "content_block_start") return `start ${content_block?.type}`;
  return type === "content_block_stop" ? "stop" : delta?.type ?? type;
}

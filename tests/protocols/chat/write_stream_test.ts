import { assertEquals } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { readReasoning } from "../../../lib/protocols/chat/reasoning_details.ts";
import { objectOf, objectsOf } from "../../../lib/protocols/members.ts";
import { accumulate, chunksOf } from "./accumulate.ts";
import { REPLIES } from "./replies.ts";
import { request, responseContextOf } from "./requests.ts";

const STREAM = { stream: true, stream_options: { include_usage: true } };

/** Checks the order of the events, then writes them. */
function stream(events: readonly ReplyEvent[], members: JsonObject = STREAM): Frame[] {
  const grammar = checkGrammar();
  const machine = chat.writer(responseContextOf(request(members)));
  return [...events.flatMap((event) => grammar.push(event)).flatMap((event) => machine.push(event)), ...machine.end()];
}

/** The same events with each text in pieces of one UTF-16 unit. */
function inPieces(events: readonly ReplyEvent[]): ReplyEvent[] {
  return events.flatMap((event) =>
    event.type === "delta" ? event.text.split("").map((text): ReplyEvent => ({ ...event, text })) : [event]
  );
}

function replyOf(name: string): Reply {
  const reply = REPLIES[name];
  if (reply === undefined) throw new RangeError(`Cannot find the answer "${name}"`);
  return reply;
}

Deno.test("writer() agrees with writeReply()", () => {
  const variants: JsonObject[] = [
    {},
    { reasoning: { exclude: true } },
    { functions: [{ name: "add" }, { name: "now" }] },
  ];
  for (const [name, reply] of Object.entries(REPLIES)) {
    assertEquals(aggregateEvents(eventsOf(reply)), reply, name);
    for (const members of variants) {
      if ("functions" in members && name === "customCalls") continue; // functions are never custom tools
      const whole = chat.writeReply(reply, responseContextOf(request(members)));
      for (const events of [eventsOf(reply), inPieces(eventsOf(reply))]) {
        assertEquals(accumulate(stream(events, { ...STREAM, ...members })), whole, name);
      }
    }
  }
});

Deno.test("writer() sends clients of OpenRouter every reasoning text once in the details, to be read back", () => {
  for (const [name, { blocks }] of Object.entries(REPLIES)) {
    const wanted = blocks.filter((block) => block.type === "reasoning");
    const frames = stream(inPieces(eventsOf(replyOf(name))), { ...STREAM, usage: { include: true } });
    const { choices } = accumulate(frames);
    const message = Array.isArray(choices) ? objectOf(objectOf(choices[0])?.message) : undefined;
    assertEquals<unknown>(readReasoning({ reasoning_details: message?.reasoning_details ?? [] }), wanted, name);
    const pieces = chunksOf(frames).flatMap(({ choices }) =>
      objectsOf(choices).flatMap(({ delta }) => objectsOf(objectOf(delta)?.reasoning_details))
    );
    assertEquals<unknown>(readReasoning({ reasoning_details: pieces }), wanted, `${name}, in pieces`);
    assertEquals(message?.reasoning ?? "", wanted.map(({ text }) => text).filter(Boolean).join("\n\n"), name);
  }
});

const overloaded: ReplyEvent = {
  type: "error",
  error: new GatewayError("overloaded", "The model is overloaded", { cause: new Error("secret") }),
};

Deno.test("writer() writes nothing after the end", () => {
  for (const end of [eventsOf(replyOf("text")).slice(-1), [overloaded]].flat()) {
    const machine = chat.writer(responseContextOf(request(STREAM)));
    machine.push({ type: "start" });
    machine.push(end);
    assertEquals(machine.push({ type: "open", index: 0, block: { type: "text" } }), []);
    assertEquals(machine.push(overloaded), []);
    assertEquals(machine.end(), []);
  }
});

import { assertEquals, assertThrows } from "@std/assert";
import { checkGrammar } from "./event_grammar.ts";
import type { ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";

const start: ReplyEvent = { type: "start" };
const open = (index: number): ReplyEvent => ({ type: "open", index, block: { type: "text" } });
const call = (index: number): ReplyEvent => ({ type: "open", index, block: { type: "tool_call", id: "c", name: "t" } });
const delta = (index: number, text = "a"): ReplyEvent => ({ type: "delta", index, text });
const cite = (index: number): ReplyEvent => ({ type: "citation", index, citation: { from: "chat", value: {} } });
const close = (index: number): ReplyEvent => ({ type: "close", index });
const finish = (reason: "end" | "length" | "tool_use" | "stop_sequence"): ReplyEvent => ({
  type: "finish",
  reason,
  usage: {},
});
const failed: ReplyEvent = { type: "error", error: new GatewayError("upstream", "Gone") };

function check(events: ReplyEvent[]): ReplyEvent[] {
  const grammar = checkGrammar();
  return [...events.flatMap((event) => grammar.push(event)), ...grammar.end()];
}

Deno.test("checkGrammar() passes valid streams unchanged", () => {
  const streams: ReplyEvent[][] = [
    [start, finish("end")],
    [failed],
    [start, failed],
    [start, open(0), delta(0), failed],
    [start, open(0), delta(0), delta(0), cite(0), close(0), open(1), close(1), finish("stop_sequence")],
    [start, call(0), close(0), finish("tool_use")],
    [start, open(0), close(0), call(1), delta(1, "{}"), close(1), finish("length")],
    [start, finish("length")],
  ];
  for (const events of streams) assertEquals(check(events), events);
});

Deno.test("checkGrammar() rejects invalid streams", () => {
  const streams: [string, ReplyEvent[]][] = [
    ["no end", [start, open(0), close(0)]],
    ["empty", []],
    ["no start", [open(0)]],
    ["finish without start", [finish("end")]],
    ["two starts", [start, start]],
    ["index from 1", [start, open(1)]],
    ["gap", [start, open(0), close(0), open(2)]],
    ["index twice", [start, open(0), close(0), open(0)]],
    ["two open", [start, open(0), open(1)]],
    ["delta without block", [start, delta(0)]],
    ["delta of a closed block", [start, open(0), close(0), delta(0)]],
    ["delta of another block", [start, open(0), delta(1)]],
    ["empty delta", [start, open(0), delta(0, "")]],
    ["citation without block", [start, cite(0)]],
    ["close without open", [start, close(0)]],
    ["close twice", [start, open(0), close(0), close(0)]],
    ["finish with an open block", [start, open(0), finish("end")]],
    ["two ends", [start, finish("end"), finish("end")]],
    ["error after the end", [start, finish("end"), failed]],
    ["open after the end", [start, finish("end"), open(0)]],
    ["tool use without a call", [start, finish("tool_use")]],
    ["call without tool use", [start, call(0), close(0), finish("end")]],
    ["call and stop sequence", [start, call(0), close(0), finish("stop_sequence")]],
  ];
  for (const [name, events] of streams) assertThrows(() => check(events), RangeError, "Cannot", name);
});

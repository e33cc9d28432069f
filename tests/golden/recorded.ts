/** Recorded streams of upstreams, and their events. */
import { checkGrammar } from "../protocols/canonical/event_grammar.ts";
import type { Protocol, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { normalizeFinish } from "../../lib/protocols/translate/restore_answer.ts";
import { framesOf as chatFrames, STREAMS as CHAT } from "../protocols/chat/upstream_streams.ts";
import { framesOf as geminiFrames, NAMES as GEMINI } from "../protocols/gemini/recorded_streams.ts";
import { fixtureNames, framesOf as messagesFrames } from "../protocols/messages/upstream_answers.ts";
import { streamFrames, STREAMS as RESPONSES } from "../protocols/responses/upstream_streams.ts";
import { sideOf } from "./crossings.ts";

/** A recorded stream. */
export interface RecordedStream {
  protocol: Protocol;
  name: string;
  frames: Frame[];
}

/** All recorded streams. */
export const RECORDED: readonly RecordedStream[] = [
  ...Object.entries(CHAT).map(([name, stream]) => ({ protocol: "chat" as const, name, frames: chatFrames(stream) })),
  ...Object.keys(RESPONSES).map((name) => ({ protocol: "responses" as const, name, frames: streamFrames(name) })),
  ...await Promise.all((await fixtureNames()).map(async (name) => (
    { protocol: "messages" as const, name, frames: await messagesFrames(name) }
  ))),
  ...["cached", "input_divided_late"].map((name) => ({ protocol: "messages" as const, name, frames: framesIn(name) })),
  ...GEMINI.map((name) => ({ protocol: "gemini" as const, name, frames: geminiFrames(name) })),
];

function framesIn(name: string): Frame[] {
  const lines = Deno.readTextFileSync(new URL(`../fixtures/messages/answers/${name}.jsonl`, import.meta.url));
  return lines.trimEnd().split("\n").map((data) => ({ event: /^\{"type":"(\w+)"/.exec(data)?.[1] ?? "", data }));
}

/** Returns a stream by its name. */
export function recordedStream(protocol: Protocol, name: string): RecordedStream {
  const found = RECORDED.find((stream) => stream.protocol === protocol && stream.name === name);
  if (found === undefined) throw new RangeError(`Cannot play "${name}" of ${protocol}: it is not recorded`);
  return found;
}

/**
 * Returns the events of a stream as a client's writer gets them, and checks the reader's own events against the
 * grammar.
 */
export function readEvents({ protocol, frames }: Pick<RecordedStream, "protocol" | "frames">): ReplyEvent[] {
  const reader = UPSTREAM_CODECS[protocol].reader({ issuer: sideOf(protocol).issuer });
  const grammar = checkGrammar();
  const read = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
  const restore = normalizeFinish();
  return [...read.flatMap((event) => grammar.push(event)), ...grammar.end()].flatMap((event) => restore(event));
}

/** Checks of streams of the messages protocol: order and completeness of events. */
import { must } from "../check.ts";
import type { ProtocolChecks } from "../protocol_client.ts";
import { checkNames } from "../shared_checks.ts";
import { type MessageAnswer, type MessageEvent, totalsOf } from "./forms.ts";

/** Checks that blocks have consecutive indices from 0, do not interleave, and contain their deltas. */
export function checkBlocks(events: readonly MessageEvent[]): void {
  let next = 0;
  let open: number | undefined;
  for (const { type, index } of events) {
    if (type === "content_block_start") {
      must(open === undefined, { expected: `content_block_stop of block ${open}`, seen: type });
      must(index === next, { expected: `index ${next}`, seen: index });
      open = next++;
    } else if (type === "content_block_delta" || type === "content_block_stop") {
      must(open !== undefined && index === open, { expected: `${type} of block ${open ?? "none"}`, seen: index });
      if (type === "content_block_stop") open = undefined;
    } else if (type === "message_delta" || type === "message_stop") {
      must(open === undefined, { expected: `content_block_stop of block ${open}`, seen: type });
    }
  }
}

/** Checks of streams. */
export const STREAMS: ProtocolChecks<MessageAnswer, MessageEvent> = {
  "stream.names": checkNames,
  async "stream.begin"(client) {
    const all = await client.readyEvents();
    const starts = all.filter(({ type }) => type === "message_start");
    must(all[0]?.type === "message_start", { expected: "message_start", seen: all[0]?.type });
    must(starts.length === 1, { expected: "one message_start", seen: `${starts.length} of them` });
    const { type, role, content, stop_reason } = Object(starts[0]?.message);
    must(type === "message" && role === "assistant" && Array.isArray(content) && content.length === 0, {
      expected: "an empty message of the assistant",
      seen: starts[0]?.message,
    });
    must(stop_reason === null, { expected: "stop_reason null", seen: stop_reason });
  },
  async "stream.start_usage"(client) {
    totalsOf(Object((await client.readyEvents()).find(({ type }) => type === "message_start")?.message).usage);
  },
  async "stream.blocks"(client) {
    const all = await client.readyEvents();
    must(all.some(({ type }) => type === "content_block_start"), { expected: "a block", seen: "none" });
    checkBlocks(all);
  },
  async "stream.delta"(client) {
    const all = await client.readyEvents();
    const deltas = all.filter(({ type }) => type === "message_delta");
    must(deltas.length > 0, { expected: "message_delta", seen: "none" });
    const [last] = deltas.slice(-1);
    const { stop_reason } = Object(last?.delta);
    must(stop_reason === "end_turn", { expected: 'stop_reason "end_turn"', seen: stop_reason });
    must(Number.isInteger(Object(last?.usage).output_tokens), { expected: "usage.output_tokens", seen: last });
    const lateBlock = all.slice(all.findIndex(({ type }) => type === "message_delta")).find(({ type }) =>
      type.startsWith("content_block")
    );
    must(lateBlock === undefined, { expected: "no block after message_delta", seen: lateBlock?.type });
  },
  async "stream.end"(client) {
    const all = await client.readyEvents();
    const stops = all.filter(({ type }) => type === "message_stop").length;
    must(stops === 1, { expected: "one message_stop", seen: `${stops} of them` });
    must(all.at(-1)?.type === "message_stop", { expected: "message_stop at the end", seen: all.at(-1)?.type });
  },
};

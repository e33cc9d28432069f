/** Checks of streams of the messages protocol: order and completeness of events. */
import { expectThat } from "../check.ts";
import type { ProtocolChecks } from "../protocol_client.ts";
import { checkNames } from "../shared_checks.ts";
import { type MessageAnswer, type MessageEvent, totalsOf } from "./forms.ts";

/** Checks that blocks have consecutive indices from 0, do not interleave, and contain their deltas. */
export function checkBlocks(events: readonly MessageEvent[]): void {
  let next = 0;
  let open: number | undefined;
  for (const { type, index } of events) {
    if (type === "content_block_start") {
      expectThat(open === undefined, { expected: `content_block_stop of block ${open}`, seen: type });
      expectThat(index === next, { expected: `index ${next}`, seen: index });
      open = next++;
    } else if (type === "content_block_delta" || type === "content_block_stop") {
      expectThat(open !== undefined && index === open, { expected: `${type} of block ${open ?? "none"}`, seen: index });
      if (type === "content_block_stop") open = undefined;
    } else if (type === "message_delta" || type === "message_stop") {
      expectThat(open === undefined, { expected: `content_block_stop of block ${open}`, seen: type });
    }
  }
}

/** Checks of streams. */
export const STREAMS: ProtocolChecks<MessageAnswer, MessageEvent> = {
  "stream.names": checkNames,
  async "stream.begin"(client) {
    const all = await client.readyEvents();
    const starts = all.filter(({ type }) => type === "message_start");
    expectThat(all[0]?.type === "message_start", { expected: "message_start", seen: all[0]?.type });
    expectThat(starts.length === 1, { expected: "one message_start", seen: `${starts.length} of them` });
    const { type, role, content, stop_reason } = Object(starts[0]?.message);
    expectThat(type === "message" && role === "assistant" && Array.isArray(content) && content.length === 0, {
      expected: "an empty message of the assistant",
      seen: starts[0]?.message,
    });
    expectThat(stop_reason === null, { expected: "stop_reason null", seen: stop_reason });
  },
  async "stream.start_usage"(client) {
    totalsOf(Object((await client.readyEvents()).find(({ type }) => type === "message_start")?.message).usage);
  },
  async "stream.blocks"(client) {
    const all = await client.readyEvents();
    expectThat(all.some(({ type }) => type === "content_block_start"), { expected: "a block", seen: "none" });
    checkBlocks(all);
  },
  async "stream.delta"(client) {
    const all = await client.readyEvents();
    const deltas = all.filter(({ type }) => type === "message_delta");
    expectThat(deltas.length > 0, { expected: "message_delta", seen: "none" });
    const [last] = deltas.slice(-1);
    const { stop_reason } = Object(last?.delta);
    expectThat(stop_reason === "end_turn", { expected: 'stop_reason "end_turn"', seen: stop_reason });
    expectThat(Number.isInteger(Object(last?.usage).output_tokens), { expected: "usage.output_tokens", seen: last });
    const lateBlock = all.slice(all.findIndex(({ type }) => type === "message_delta")).find(({ type }) =>
      type.startsWith("content_block")
    );
    expectThat(lateBlock === undefined, { expected: "no block after message_delta", seen: lateBlock?.type });
  },
  async "stream.end"(client) {
    const all = await client.readyEvents();
    const stops = all.filter(({ type }) => type === "message_stop").length;
    expectThat(stops === 1, { expected: "one message_stop", seen: `${stops} of them` });
    expectThat(all.at(-1)?.type === "message_stop", { expected: "message_stop at the end", seen: all.at(-1)?.type });
  },
};

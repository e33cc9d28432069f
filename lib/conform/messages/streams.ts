/** Messages: the order and the completeness of events. */
import { type Check, must } from "../check.ts";
import { checkNames, streamOf, wholeOf } from "../common.ts";
import type { Context } from "../context.ts";
import { checkUsage, type Event, foldEvents, inputOf, MESSAGES, readEvents, readWhole } from "./forms.ts";

async function events(context: Context): Promise<Event[]> {
  return readEvents(await streamOf(MESSAGES, context));
}

/** Blocks begin at index 0, one after the other, and everything of a block stands between its start and its stop. */
export function checkBlocks(events: readonly Event[]): void {
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
export const MESSAGES_STREAMS: readonly Check[] = [
  {
    id: "messages.stream.names",
    part: "messages",
    title: "Every event has an event line, equal to the type in its data",
    why: "Every official SDK drops an event without it",
    async run(context) {
      const stream = await streamOf(MESSAGES, context);
      checkNames(stream, readEvents(stream));
    },
  },
  {
    id: "messages.stream.begin",
    part: "messages",
    title: "The first event is message_start, once, with an empty message",
    why: "SDK helpers throw at a second one",
    async run(context) {
      const all = await events(context);
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
  },
  {
    id: "messages.stream.start_usage",
    part: "messages",
    title: "message_start has a usage",
    why: "SDK helpers crash without it, and context meters read its input_tokens",
    async run(context) {
      checkUsage(Object((await events(context)).find(({ type }) => type === "message_start")?.message).usage);
    },
  },
  {
    id: "messages.stream.blocks",
    part: "messages",
    title: "Blocks come one after the other from index 0, each with start, pieces and stop",
    why: "SDKs lose the text of a block behind a gap",
    async run(context) {
      const all = await events(context);
      must(all.some(({ type }) => type === "content_block_start"), { expected: "a block", seen: "none" });
      checkBlocks(all);
    },
  },
  {
    id: "messages.stream.delta",
    part: "messages",
    title: "message_delta tells why it stopped, and the usage, after the last block",
    why: "SDK helpers crash without the usage, and agents go on by the reason",
    async run(context) {
      const all = await events(context);
      const deltas = all.filter(({ type }) => type === "message_delta");
      must(deltas.length > 0, { expected: "message_delta", seen: "none" });
      const [last] = deltas.slice(-1);
      const { stop_reason } = Object(last?.delta);
      must(stop_reason === "end_turn", { expected: 'stop_reason "end_turn"', seen: stop_reason });
      must(Number.isInteger(Object(last?.usage).output_tokens), { expected: "usage.output_tokens", seen: last });
      const late = all.slice(all.findIndex(({ type }) => type === "message_delta")).find(({ type }) =>
        type.startsWith("content_block")
      );
      must(late === undefined, { expected: "no block after message_delta", seen: late?.type });
    },
  },
  {
    id: "messages.stream.end",
    part: "messages",
    title: "The last event is message_stop, once",
    why: "SDK helpers do not take a message for whole without it",
    async run(context) {
      const all = await events(context);
      const stops = all.filter(({ type }) => type === "message_stop").length;
      must(stops === 1, { expected: "one message_stop", seen: `${stops} of them` });
      must(all.at(-1)?.type === "message_stop", { expected: "message_stop at the end", seen: all.at(-1)?.type });
    },
  },
  {
    id: "messages.stream.same",
    part: "messages",
    title: "Whole and streamed, the same prompt has the same number of tokens, and so has the same answer",
    why: "Streaming must not change the bill",
    async run(context) {
      const said = readWhole(await wholeOf(MESSAGES, context));
      const streamed = foldEvents(await events(context));
      const [one, other] = [checkUsage(said.usage), checkUsage(streamed.usage)];
      must(inputOf(one) === inputOf(other), { expected: "equal numbers of input tokens", seen: [one, other] });
      const thought = [said, streamed].some(({ content }) => content.some(({ type }) => type !== "text"));
      if (said.text !== streamed.text || thought) return "the two answers differ, so that only the prompt was compared";
      must(one.output_tokens === other.output_tokens, {
        expected: "equal output_tokens of equal texts",
        seen: [one, other],
      });
    },
  },
];

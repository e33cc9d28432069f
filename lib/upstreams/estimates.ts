/** Counts tokens that the upstream does not report. */
import type { ContentBlock, OpenBlock, ReplyEvent, TokenUsage } from "../protocols/canonical/types.ts";
import { countReply } from "../billing/count_prompt.ts";
import { isEstimated } from "../billing/parts.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import type { Call, EventFeed } from "./upstream.ts";

/**
 * Wraps a feed so that its answer has complete usage. Messages clients expect input tokens in the first event. Output is
 * counted when the upstream reports none, as many hosts do, or when the gateway cut the answer.
 */
export function withEstimates(feed: EventFeed, { prompt, countInput }: Call): EventFeed {
  const said: { block: OpenBlock; pieces: string[] }[] = [];
  let input: number | undefined;

  async function withInput(usage: TokenUsage = {}): Promise<TokenUsage> {
    if (usage.prompt !== undefined) return usage;
    return { ...usage, prompt: input ??= await countInput(), counted: isEstimated(prompt) ? "estimated" : true };
  }

  async function withOutput(usage: TokenUsage): Promise<TokenUsage> {
    if (usage.completion !== undefined) return usage;
    const blocks = said.flatMap(({ block, pieces }) => blockOf(block, pieces.join("")));
    const output = await countReply(blocks, await loadTokenCounter());
    return { ...usage, ...output, counted: usage.counted ?? true };
  }

  /** Completes an event. Only the first and last event may need a count, which is asynchronous. */
  function estimate(event: ReplyEvent): ReplyEvent | Promise<ReplyEvent> {
    switch (event.type) {
      case "start":
        return prompt.protocol === "messages" && event.usage?.prompt === undefined ? estimateStart(event) : event;
      case "open":
        said[event.index] = { block: event.block, pieces: [] };
        return event;
      case "delta":
        said[event.index]?.pieces.push(event.text);
        return event;
      case "finish":
        return event.usage.prompt === undefined || event.usage.completion === undefined ? estimateEnd(event) : event;
      default:
        return event;
    }
  }

  async function estimateStart(event: Extract<ReplyEvent, { type: "start" }>): Promise<ReplyEvent> {
    return { ...event, usage: await withInput(event.usage) };
  }

  async function estimateEnd(event: Extract<ReplyEvent, { type: "finish" }>): Promise<ReplyEvent> {
    return { ...event, usage: await withOutput(await withInput(event.usage)) };
  }

  return {
    async read() {
      const events = await feed.read();
      if (events === undefined) return undefined;
      for (let at = 0; at < events.length; at++) {
        const event = events[at];
        if (event === undefined) continue;
        const estimated = estimate(event);
        if (estimated !== event) events[at] = await estimated;
      }
      return events;
    },
    cancel: () => feed.cancel(),
  };
}

function blockOf(block: OpenBlock, text: string): ContentBlock[] {
  switch (block.type) {
    case "tool_call":
      return [{ ...block, arguments: text }];
    case "vendor_specific":
      return [];
    default:
      return [{ type: block.type, text }];
  }
}

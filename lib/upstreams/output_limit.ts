/** Cuts answers at output limits that are lower than the upstream accepts. */
import { eventsOf, ReplyAggregator } from "../protocols/canonical/aggregate_events.ts";
import type { ContentBlock, ContentBlockOf, Reply, ReplyEvent } from "../protocols/canonical/types.ts";
import { loadTokenCounter, type TokenCounter, tokenPieces } from "../o200k/mod.ts";
import { characterEnd } from "../text.ts";
import type { EventFeed } from "./upstream.ts";

/** Upper bound of the characters in an o200k_base token. */
const MAX_TOKEN_CHARS = 256;

/**
 * Limits an answer to `limit` tokens, including reasoning. A cut answer finishes with `length`. The upstream is read to
 * its end, because only its final usage has the reasoning tokens and the cost. All content is sent after the upstream's
 * last event.
 */
export function cutAtLimit(feed: EventFeed, limit: number): EventFeed {
  const aggregator = new ReplyAggregator();
  let room = limit * MAX_TOKEN_CHARS;
  let isTooLong = false;

  /** Stores an event. Text that is certainly beyond the limit is discarded, so that memory stays bounded. */
  function keep(event: ReplyEvent): void {
    if (event.type !== "delta") return aggregator.push(event);
    const text = event.text.slice(0, characterEnd(event.text, room));
    room -= text.length;
    if (text.length < event.text.length) isTooLong = true;
    if (text !== "") aggregator.push({ ...event, text });
  }

  async function end(finish: ReplyEvent): Promise<ReplyEvent[]> {
    aggregator.push(finish);
    const reply = aggregator.end();
    if (!isTooLong && fits(reply, limit)) return withoutStart(reply);
    return withoutStart(cutReply(reply, limit, await loadTokenCounter()));
  }

  return {
    async read() {
      for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
        const passed: ReplyEvent[] = [];
        for (const event of events) {
          if (event.type === "finish") passed.push(...await end(event));
          else if (event.type === "start" || event.type === "error") passed.push(event);
          else keep(event);
        }
        if (passed.length > 0) return passed;
      }
      return undefined;
    },
    cancel: () => feed.cancel(),
  };
}

function withoutStart(reply: Reply): ReplyEvent[] {
  return eventsOf(reply).slice(1);
}

/** Returns whether the upstream reports a plausible count within the limit. Some hosts report 0 for unknown. */
function fits({ finish, usage: { completion = 0 } }: Reply, limit: number): boolean {
  return finish !== "length" && completion > 0 && completion <= limit;
}

function cutReply(reply: Reply, limit: number, counter: TokenCounter): Reply {
  let remaining = limit - hiddenTokens(reply, counter);
  // A tool call cut by the upstream's higher limit is also beyond the client's limit.
  const isBroken = reply.finish === "length" && reply.blocks.at(-1)?.type === "tool_call";
  let isCut = remaining < 0;
  const blocks = (isBroken ? reply.blocks.slice(0, -1) : reply.blocks).flatMap((block): ContentBlock[] => {
    // Results of hosted tools are already paid for and are not output text.
    if (block.type === "vendor_specific") return [block];
    if (isCut) return [];
    const fitted = fitBlock(block, remaining, counter);
    remaining -= fitted.tokens;
    isCut = !fitted.isWhole;
    return fitted.blocks;
  });
  if (!isCut && !isBroken) return reply;
  const { stopSequence: _, ...others } = reply;
  return { ...others, blocks, finish: "length" };
}

/** Returns the billed reasoning tokens beyond those of the visible reasoning text. */
function hiddenTokens({ blocks, usage: { reasoning = 0 } }: Reply, counter: TokenCounter): number {
  let visibleTokens = 0;
  for (const block of blocks) if (block.type === "reasoning") visibleTokens += counter.count(block.text);
  return Math.max(0, reasoning - visibleTokens);
}

/** The part of a block that fits into the remaining tokens. */
interface FittedBlock {
  blocks: ContentBlock[];
  tokens: number;
  isWhole: boolean;
}

/** Cuts a block to the remaining tokens. A tool call is kept completely or left out. */
function fitBlock(block: ContentBlock, room: number, counter: TokenCounter): FittedBlock {
  switch (block.type) {
    case "text":
    case "refusal":
    case "reasoning":
      return fitText(block, room, counter);
    case "tool_call": {
      const tokens = counter.count(block.name) + counter.count(block.namespace ?? "") + counter.count(block.arguments);
      return tokens > room ? { blocks: [], tokens: 0, isWhole: false } : { blocks: [block], tokens, isWhole: true };
    }
    default:
      return { blocks: [block], tokens: 0, isWhole: true };
  }
}

function fitText(
  block: ContentBlockOf<"text" | "refusal" | "reasoning">,
  room: number,
  counter: TokenCounter,
): FittedBlock {
  let text = "";
  let tokens = 0;
  for (const piece of tokenPieces(block.text, counter)) {
    if (piece === undefined) continue;
    if (tokens + piece.tokens > room) {
      // Signatures and citation offsets are valid only for the whole text, so they are left out.
      return { blocks: text === "" ? [] : [{ type: block.type, text }], tokens, isWhole: false };
    }
    text += piece.text;
    tokens += piece.tokens;
  }
  return { blocks: [block], tokens, isWhole: true };
}

/** Adds token counts that the upstream does not report to the events of an answer. */
import type { ContentBlock, OpenBlock, ReplyEvent, TokenUsage } from "../protocols/canonical/types.ts";
import { inputUsage } from "../protocols/canonical/input_tokens.ts";
import { countReply } from "../billing/count_prompt.ts";
import { isEstimated } from "../billing/prompt_parts.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import type { Call } from "./upstream.ts";

/**
 * Completes the usage of one answer. Clients of the messages protocol expect input tokens in the first event. Most
 * other upstreams report them in the last event, so they are counted unless the whole answer has arrived. Output is
 * counted if the upstream reports none, as many hosts do, or if the gateway cut the answer.
 */
export class UsageEstimator {
  readonly #request: Pick<Call, "prompt" | "countInput">;
  readonly #blocks: { block: OpenBlock; texts: string[] }[] = [];
  #input: number | undefined;

  /** @param request the request whose tokens are counted */
  constructor(request: Pick<Call, "prompt" | "countInput">) {
    this.#request = request;
  }

  /** Completes the next events of the answer in place. @returns the events; a promise if tokens must be counted */
  estimate(events: ReplyEvent[]): ReplyEvent[] | Promise<ReplyEvent[]> {
    let counts = false;
    for (const [index, event] of events.entries()) {
      if (event.type === "start" && this.#needsCount(event)) {
        const usage = reportedInput(events);
        if (usage === undefined) counts = true;
        else events[index] = { ...event, usage };
      } else if (event.type === "open") this.#blocks[event.index] = { block: event.block, texts: [] };
      else if (event.type === "delta") this.#blocks[event.index]?.texts.push(event.text);
      else if (this.#needsCount(event)) counts = true;
    }
    return counts ? this.#count(events) : events;
  }

  #needsCount(event: ReplyEvent): boolean {
    if (event.type === "start") {
      return this.#request.prompt.protocol === "messages" && event.usage?.prompt === undefined;
    }
    return event.type === "finish" && (event.usage.prompt === undefined || event.usage.completion === undefined);
  }

  async #count(events: ReplyEvent[]): Promise<ReplyEvent[]> {
    for (const [index, event] of events.entries()) {
      if (!this.#needsCount(event)) continue;
      if (event.type === "start") events[index] = { ...event, usage: await this.#withInput(event.usage) };
      if (event.type === "finish") {
        events[index] = { ...event, usage: await this.#withOutput(await this.#withInput(event.usage)) };
      }
    }
    return events;
  }

  async #withInput(usage: TokenUsage = {}): Promise<TokenUsage> {
    if (usage.prompt !== undefined) return usage;
    const { prompt, countInput } = this.#request;
    this.#input ??= await countInput();
    return { ...usage, prompt: this.#input, counted: isEstimated(prompt) ? "estimated" : true };
  }

  async #withOutput(usage: TokenUsage): Promise<TokenUsage> {
    if (usage.completion !== undefined) return usage;
    const blocks = this.#blocks.flatMap(({ block, texts }) => blockOf(block, texts.join("")));
    const output = await countReply(blocks, await loadTokenCounter());
    return { ...usage, ...output, counted: usage.counted ?? true };
  }
}

/** Returns the usage of the input from the last event of a whole answer; undefined if it is not reported. */
function reportedInput(events: readonly ReplyEvent[]): TokenUsage | undefined {
  const last = events.at(-1);
  return last?.type === "finish" && last.usage.prompt !== undefined ? inputUsage(last.usage) : undefined;
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

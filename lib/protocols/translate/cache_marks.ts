/** Fits prompt-cache marks to Anthropic's limits. */
import { MAX_CACHE_MARKS } from "../canonical/cache_mark.ts";
import type { CacheMark, ContentBlock, Message, Prompt, Tool } from "../canonical/types.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import type { AdaptTarget } from "../upstream_codec.ts";

/** The name under which lost marks are reported. */
const MARK_MEMBER = "cache_control";

interface Marked {
  cache?: CacheMark;
}

/**
 * Keeps the last four marks of tools and messages, and drops marks on reasoning. A one-hour mark after a five-minute
 * mark becomes a five-minute mark. All marks are dropped if the target has none. Losses are added to `target.dropped`.
 * If client and target share a protocol that has marks as an extension, all marks stay: the upstream applies its
 * limits.
 */
export function fitCacheMarks(prompt: Prompt, target: AdaptTarget): Prompt {
  const isOwn = target.protocol === prompt.protocol && target.protocol !== "messages";
  const supportsMarks = target.protocol === "messages" || target.dialect.cacheMarks === true ||
    (isOwn && target.protocol === "responses");
  if (isOwn && supportsMarks) return prompt;
  let marksLeft = countMarks(prompt);
  let hasShortMark = false;

  function fitMark<T extends Marked>(part: T, mayHaveMark = true): T {
    if (part.cache === undefined) return part;
    const { cache, ...bare } = part;
    if (mayHaveMark && supportsMarks && marksLeft-- <= MAX_CACHE_MARKS) {
      hasShortMark ||= cache.ttl === "5m";
      if (cache.ttl === "5m" || !hasShortMark) return part;
      target.dropped.add(MARK_MEMBER);
      return { ...part, cache: { ttl: "5m" } };
    }
    target.dropped.add(MARK_MEMBER);
    return bare as T;
  }

  function fitBlock(block: ContentBlock): ContentBlock {
    if (block.type === "tool_result") {
      const blocks = block.blocks.map(fitBlock);
      return fitMark({ ...block, blocks });
    }
    if (block.type === "vendor_specific") countVendorMark(block.value);
    return fitMark(block, mayHaveMark(block));
  }

  function countVendorMark({ cache_control: mark }: JsonObject): void {
    if (!isObject(mark)) return;
    marksLeft--;
    hasShortMark ||= mark.ttl !== "1h";
  }

  const tools = prompt.tools.map((tool) => {
    if (tool.type === "hosted") countVendorMark(tool.value);
    return fitMark(tool);
  });
  const cacheOrder = [...prompt.messages.keys()].sort((a, b) =>
    cacheRank(prompt.messages[a]) - cacheRank(prompt.messages[b])
  );
  const messages = [...prompt.messages];
  for (const index of cacheOrder) {
    const message = messages[index];
    if (message !== undefined) messages[index] = { ...message, blocks: message.blocks.map(fitBlock) };
  }
  return { ...prompt, tools, messages };
}

/** Returns the sort key of a message: system messages are cached before the others. */
function cacheRank(message: Message | undefined): number {
  return message?.role === "system" ? 0 : 1;
}

function mayHaveMark(block: ContentBlock): boolean {
  return block.type !== "reasoning" && !(block.type === "text" && block.text === "");
}

function countMarks({ tools, messages }: Prompt): number {
  const count = (blocks: readonly ContentBlock[]): number =>
    blocks.reduce((sum, block) => {
      const innerCount = block.type === "tool_result" ? count(block.blocks) : 0;
      const isMarkedByVendor = block.type === "vendor_specific" && isObject(block.value.cache_control);
      const isMarked = block.cache !== undefined && mayHaveMark(block);
      return sum + innerCount + Number(isMarkedByVendor) + Number(isMarked);
    }, 0);
  const hasMark = (tool: Tool) =>
    tool.cache !== undefined || (tool.type === "hosted" && isObject(tool.value.cache_control));
  return tools.filter(hasMark).length +
    messages.reduce((sum, { blocks }) => sum + count(blocks), 0);
}

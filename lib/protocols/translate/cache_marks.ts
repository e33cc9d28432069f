/** Fits prompt-cache marks to Anthropic's limits. */
import type { CacheMark, ContentBlock, Message, Prompt, Tool } from "../canonical/types.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import type { AdaptTarget } from "./adapt_target.ts";

const MAX_MARKS = 4;
const NAME = "cache_control";

interface Marked {
  cache?: CacheMark;
}

/**
 * Keeps the last four marks of tools and messages, none on reasoning. A mark of one hour after one of five minutes
 * becomes one of five minutes. Protocols without marks lose all. Every loss is named. Where marks are an extension of the
 * client's own protocol, they are the upstream's to limit.
 */
export function fitCacheMarks(prompt: Prompt, target: AdaptTarget): Prompt {
  const isOwn = target.protocol === prompt.protocol && target.protocol !== "messages";
  const carries = target.protocol === "messages" || target.dialect.cacheMarks === true ||
    (isOwn && target.protocol === "responses");
  if (isOwn && carries) return prompt;
  let remaining = countMarks(prompt);
  let short = false;

  function fit<T extends Marked>(marked: T, takesMark = true): T {
    if (marked.cache === undefined) return marked;
    const { cache, ...bare } = marked;
    if (takesMark && carries && remaining-- <= MAX_MARKS) {
      short ||= cache.ttl === "5m";
      if (cache.ttl === "5m" || !short) return marked;
      target.dropped.add(NAME);
      return { ...marked, cache: { ttl: "5m" } };
    }
    target.dropped.add(NAME);
    return bare as T;
  }

  function fitBlock(block: ContentBlock): ContentBlock {
    if (block.type === "tool_result") {
      const blocks = block.blocks.map(fitBlock);
      return fit({ ...block, blocks });
    }
    if (block.type === "vendor_specific") countVendorMark(block.value);
    return fit(block, takesMark(block));
  }

  /** Counts a mark inside a vendor-specific object. */
  function countVendorMark({ cache_control: mark }: JsonObject): void {
    if (!isObject(mark)) return;
    remaining--;
    short ||= mark.ttl !== "1h";
  }

  const tools = prompt.tools.map((tool) => {
    if (tool.type === "hosted") countVendorMark(tool.value);
    return fit(tool);
  });
  const inOrder = [...prompt.messages.keys()].sort((a, b) => rank(prompt.messages[a]) - rank(prompt.messages[b]));
  const messages = [...prompt.messages];
  for (const index of inOrder) {
    const message = messages[index];
    if (message !== undefined) messages[index] = { ...message, blocks: message.blocks.map(fitBlock) };
  }
  return { ...prompt, tools, messages };
}

/** System messages are cached before the others. */
function rank(message: Message | undefined): number {
  return message?.role === "system" ? 0 : 1;
}

function takesMark(block: ContentBlock): boolean {
  return block.type !== "reasoning" && !(block.type === "text" && block.text === "");
}

/** Counts the marks that Anthropic counts. */
function countMarks({ tools, messages }: Prompt): number {
  const count = (blocks: readonly ContentBlock[]): number =>
    blocks.reduce((sum, block) => {
      const inner = block.type === "tool_result" ? count(block.blocks) : 0;
      const vendorSpecific = block.type === "vendor_specific" && isObject(block.value.cache_control);
      const own = block.cache !== undefined && takesMark(block);
      return sum + inner + Number(vendorSpecific) + Number(own);
    }, 0);
  const onTool = (tool: Tool) =>
    tool.cache !== undefined || (tool.type === "hosted" && isObject(tool.value.cache_control));
  return tools.filter(onTool).length +
    messages.reduce((sum, { blocks }) => sum + count(blocks), 0);
}

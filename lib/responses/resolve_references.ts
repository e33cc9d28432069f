/** Replaces references to earlier responses and their items by the items. */
import type { KeptResponse } from "../recall/recent_responses.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type Json, parsePlain, scanElements } from "../json/mod.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { plainText } from "../text.ts";
import { bodyTooLarge } from "../server/head.ts";
import { isSealed, openCompaction } from "./compaction_items.ts";
import type { ResponseMemory } from "./response_memory.ts";

/** Longest text of a reference: longer items are not parsed. */
const LONGEST_REFERENCE = 1_024;

/** Longest id shown in an error. */
const LONGEST_SHOWN = 128;

const LONGEST_CHAIN = 10_000;

/** Items resolved before yielding to the event loop. */
const ITEMS_PER_TURN = 1_000;

/** Most compactions of one request: each replaces everything before it, and takes 0.1 ms to decrypt. */
const MAX_COMPACTIONS = 64;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Returns whether an input item is a reference to another item. */
export function isReference(item: Json | undefined): boolean {
  if (!isObject(item)) return false;
  return item.type === "item_reference" ||
    item.type === undefined && item.role === undefined && typeof item.id === "string";
}

/**
 * Returns the items before those of a request, with their references resolved: JSON texts separated by commas.
 * @throws {GatewayError} `invalid` if one of the responses is not stored
 */
export async function recallConversation(id: string, memory: ResponseMemory): Promise<string> {
  const parts: string[] = [];
  let next: KeptResponse["base"] = { id, withOutput: true };
  for (let length = 0; next !== undefined; length++) {
    const found: KeptResponse | undefined = length < LONGEST_CHAIN ? await memory.find(next.id) : undefined;
    if (found === undefined) throw responseGone(id, memory);
    if (next.withOutput) parts.unshift(decoder.decode(found.output));
    parts.unshift(decoder.decode(found.input));
    next = found.base;
  }
  return joinItems(parts);
}

/** Items without references, and the response with the last item referred to. */
export interface ResolvedItems {
  text: string;
  last: KeptResponse | undefined;
}

/** Settings of `resolveItems`. */
export interface Resolving {
  /** Bound of the result, since many references may name one item. */
  maxBytes: number;
  /** True if the upstream may have made the compaction items of other gateways. */
  compactsUpstream: boolean;
}

/**
 * Resolves the references in a list of items. @param items JSON texts separated by commas
 * @throws {GatewayError} `invalid` if an item is not stored or cannot be decrypted; `too_large`
 */
export async function resolveItems(
  items: string,
  memory: ResponseMemory,
  { maxBytes, compactsUpstream }: Resolving,
): Promise<ResolvedItems> {
  const list = `[${items}]`;
  const texts: string[] = [];
  let last: KeptResponse | undefined;
  let bytes = 0;
  let compactions = 0;
  const open = async (text: string) => {
    const item = text.includes('"compaction"') ? parsePlain(text) : undefined;
    if (!isSealed(item)) return text;
    if (++compactions > MAX_COMPACTIONS) throw tooManyCompactions(texts.length);
    const message = await openCompaction(item, memory.secret);
    if (message !== undefined) return JSON.stringify(message);
    if (compactsUpstream) return text;
    throw new GatewayError("invalid", "Cannot decrypt this compaction item: it belongs to another API key", {
      param: `input[${texts.length}]`,
    });
  };
  for (const { start, end } of scanElements(list)) {
    // Items in memory are found without yielding.
    if (texts.length % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await yieldToEventLoop();
    const text = list.slice(start, end);
    const id = referredId(text);
    if (id === undefined) {
      texts.push(await open(text));
      continue;
    }
    const found = await memory.findByItem(id);
    const item = found?.items.findLast((item) => item.id === id);
    if (found === undefined || item === undefined) throw itemGone(id, { index: texts.length, memory });
    bytes += item.end - item.start;
    if (bytes > maxBytes) throw bodyTooLarge(maxBytes);
    const itemText = decoder.decode(found.output.subarray(item.start, item.end));
    texts.push(await open(itemText));
    last = found;
  }
  return { text: texts.join(","), last };
}

/** The input texts of a response and of those that it shares them with; absent where an output is between them. */
export async function sharedInput(response: KeptResponse, memory: ResponseMemory): Promise<string | undefined> {
  const parts = [decoder.decode(response.input)];
  for (let { base } = response; base !== undefined;) {
    const found = base.withOutput ? undefined : await memory.find(base.id);
    if (found === undefined || parts.length > LONGEST_CHAIN) return undefined;
    parts.unshift(decoder.decode(found.input));
    base = found.base;
  }
  return joinItems(parts);
}

/** Joins lists of items, which may be empty. */
export function joinItems(lists: readonly string[]): string {
  return lists.filter((list) => list !== "").join(",");
}

function referredId(text: string): string | undefined {
  if (text.length > LONGEST_REFERENCE) return undefined;
  const item = parsePlain(text);
  return isReference(item) && isObject(item) && typeof item.id === "string" ? item.id : undefined;
}

function responseGone(id: string, memory: ResponseMemory): GatewayError {
  return new GatewayError(
    "invalid",
    `Cannot continue response ${JSON.stringify(plainText(id, LONGEST_SHOWN))}: ${whyGone(memory)}`,
    { param: "previous_response_id", code: "previous_response_not_found", rule: whyGone(memory) },
  );
}

function itemGone(id: string, { index, memory }: { index: number; memory: ResponseMemory }): GatewayError {
  return new GatewayError("invalid", `Cannot find item ${JSON.stringify(id)}: ${whyGone(memory)}`, {
    param: `input[${index}]`,
    code: "item_not_found",
    rule: whyGone(memory),
  });
}

function tooManyCompactions(index: number): GatewayError {
  return new GatewayError("invalid", `Cannot decrypt more than ${MAX_COMPACTIONS} compaction items of one request`, {
    param: `input[${index}]`,
  });
}

function whyGone({ limits }: ResponseMemory): string {
  const why = limits === null
    ? "this gateway does not store responses"
    : `responses are kept for ${limits.minutes} minutes after their last use, for the key that made them, as long as ` +
      "there is room";
  return `${why}. Send the items themselves; a client whose requests say "store": false does so`;
}

/** Replaces references to earlier responses and their items by the items themselves. */
import type { KeptResponse } from "../recall/recent_responses.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type Json, parsePlain, scanElements, writeJson } from "../json/mod.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { plainText } from "../text.ts";
import { isSealed, openCompaction } from "./compaction_items.ts";
import type { ResponseMemory } from "./response_memory.ts";

/** Longest text of a reference. Longer items are not parsed. */
const MAX_REFERENCE_LENGTH = 1_024;

/** Longest reasoning without its content: a summary. */
const MAX_REASONING_LENGTH = 262_144;

/** Maximum number of searches for reasoning that is not stored, since each may ask Redis. The rest is sent as it is. */
const MAX_UNKNOWN_REASONING = 256;

/** Longest id in an error. */
const MAX_SHOWN_LENGTH = 128;

/** Maximum number of earlier responses of a conversation. */
const MAX_CHAIN_LENGTH = 10_000;

/** Responses of a chain that are found before yielding to the event loop. */
const RESPONSES_PER_SLICE = 256;

/** Items that are resolved before yielding to the event loop. */
const ITEMS_PER_SLICE = 1_000;

/**
 * Maximum number of compactions of one request. Clients need only one, since it replaces everything before; decrypting
 * takes 0.1 ms.
 */
const MAX_COMPACTIONS = 64;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Returns whether an input item is a reference to another item. */
export function isReference(item: Json | undefined): boolean {
  if (!isObject(item)) return false;
  return item.type === "item_reference" ||
    item.type === undefined && item.role === undefined && typeof item.id === "string";
}

/**
 * Returns whether an item is reasoning without its content. Clients that did not ask for encrypted reasoning send such
 * items back, and only a vendor that has stored them accepts them.
 */
export function isBareReasoning(item: Json | undefined): boolean {
  if (!isObject(item) || item.type !== "reasoning" || typeof item.id !== "string" || item.id === "") return false;
  const { encrypted_content: encrypted, content } = item;
  return (encrypted ?? "") === "" && (!Array.isArray(content) || content.length === 0);
}

/**
 * Called with the size of stored items, in bytes, before they are copied: a request of a few bytes can recall many
 * megabytes. It may throw to refuse the request.
 */
export type TakeBytes = (bytes: number) => void;

/**
 * Returns all items of an earlier response and of the responses before it, as JSON texts separated by commas.
 * @throws {GatewayError} `invalid` if one of the responses is not stored, or was replaced by a later one with its id;
 * the errors of `take`
 */
export async function recallConversation(id: string, memory: ResponseMemory, take: TakeBytes): Promise<string> {
  /** The last items first. */
  const parts: string[] = [];
  const seen = new Set<string>();
  let next: KeptResponse["base"] = { id, withOutput: true };
  while (next !== undefined) {
    const response: KeptResponse | undefined = await findNew(next.id, seen, memory);
    if (response === undefined) throw responseGone(id, memory);
    take(response.input.length + (next.withOutput ? response.output.length : 0));
    if (next.withOutput) parts.push(decoder.decode(response.output));
    parts.push(decoder.decode(response.input));
    next = response.base;
  }
  return joinItems(parts.reverse());
}

/** Finds the next response of a chain; undefined if the chain has its id already, as upstreams may repeat ids. */
async function findNew(id: string, seen: Set<string>, memory: ResponseMemory): Promise<KeptResponse | undefined> {
  if (seen.has(id) || seen.size >= MAX_CHAIN_LENGTH) return undefined;
  // Finding a response in memory does not yield to the event loop.
  if (seen.size % RESPONSES_PER_SLICE === RESPONSES_PER_SLICE - 1) await yieldToEventLoop();
  seen.add(id);
  return await memory.find(id);
}

/** Items without references. */
export interface ResolvedItems {
  /** JSON texts separated by commas. */
  text: string;
  /** The response that contains the last referenced item; undefined without references. */
  last: KeptResponse | undefined;
}

/** Options of `resolveItems`. */
export interface ResolveOptions {
  take: TakeBytes;
  /** True if the upstream may be able to decrypt compaction items that the gateway cannot. */
  compactsUpstream: boolean;
}

/**
 * Resolves the references in a list of items, restores reasoning, and decrypts the gateway's compaction items.
 * @param items JSON texts separated by commas
 * @throws {GatewayError} `invalid` if an item is not stored or cannot be decrypted; the errors of `take`
 */
export async function resolveItems(
  items: string,
  memory: ResponseMemory,
  { take, compactsUpstream }: ResolveOptions,
): Promise<ResolvedItems> {
  const list = `[${items}]`;
  const texts: string[] = [];
  let last: KeptResponse | undefined;
  let compactions = 0;
  let unknownReasoning = 0;
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
    // Finding items in memory does not yield to the event loop, so the loop does.
    if (texts.length % ITEMS_PER_SLICE === ITEMS_PER_SLICE - 1) await yieldToEventLoop();
    const text = list.slice(start, end);
    const id = referencedId(text);
    if (id === undefined) {
      const bareId = unknownReasoning < MAX_UNKNOWN_REASONING ? bareReasoningId(text) : undefined;
      const reasoning = bareId === undefined ? undefined : await findReasoning(text, bareId, memory);
      if (reasoning !== undefined) take(reasoning.length);
      else if (bareId !== undefined) unknownReasoning++;
      texts.push(reasoning ?? await open(text));
      continue;
    }
    const response = await memory.findByItem(id);
    const item = response?.items.findLast((item) => item.id === id);
    if (response === undefined || item === undefined) throw itemGone(id, { index: texts.length, memory });
    take(item.end - item.start);
    const itemText = decoder.decode(response.output.subarray(item.start, item.end));
    texts.push(await open(itemText));
    last = response;
  }
  return { text: texts.join(","), last };
}

/** Returns the id of bare reasoning; undefined for any other item. */
function bareReasoningId(text: string): string | undefined {
  const item = text.includes('"reasoning"') && text.length <= MAX_REASONING_LENGTH ? parsePlain(text) : undefined;
  return isObject(item) && isBareReasoning(item) && typeof item.id === "string" ? item.id : undefined;
}

/**
 * Returns the stored item of bare reasoning with its encrypted content. A store that does not answer counts as one
 * without the item: the upstream may have it. Some hosts repeat their ids, so the summaries must be equal.
 */
async function findReasoning(text: string, id: string, memory: ResponseMemory): Promise<string | undefined> {
  const response = await memory.findByItem(id).catch(() => undefined);
  const kept = response?.items.findLast((item) => item.id === id);
  if (response === undefined || kept === undefined) return undefined;
  const keptText = decoder.decode(response.output.subarray(kept.start, kept.end));
  const [stored, sent] = [parsePlain(keptText), parsePlain(text)];
  if (!isObject(stored) || !isObject(sent) || stored.type !== "reasoning" || isBareReasoning(stored)) return undefined;
  return writeJson(stored.summary ?? []) === writeJson(sent.summary ?? []) ? keptText : undefined;
}

/**
 * Returns the input items of a response, including those that are stored with earlier responses; undefined if an output
 * is between them, if one of the responses is not stored, or if they have more than `maxBytes`.
 */
export async function sharedInput(
  response: KeptResponse,
  memory: ResponseMemory,
  maxBytes: number,
): Promise<string | undefined> {
  let bytes = response.input.length;
  if (bytes > maxBytes) return undefined;
  const parts = [decoder.decode(response.input)];
  const seen = new Set([response.id]);
  for (let { base } = response; base !== undefined;) {
    const earlier = base.withOutput ? undefined : await findNew(base.id, seen, memory);
    if (earlier === undefined || (bytes += earlier.input.length) > maxBytes) return undefined;
    parts.push(decoder.decode(earlier.input));
    base = earlier.base;
  }
  return joinItems(parts.reverse());
}

/** Joins lists of items with commas. Lists may be empty, or have white space around their items. */
export function joinItems(lists: readonly string[]): string {
  return lists.map((list) => list.trim()).filter((list) => list !== "").join(",");
}

function referencedId(text: string): string | undefined {
  if (text.length > MAX_REFERENCE_LENGTH) return undefined;
  const item = parsePlain(text);
  return isReference(item) && isObject(item) && typeof item.id === "string" ? item.id : undefined;
}

function responseGone(id: string, memory: ResponseMemory): GatewayError {
  return new GatewayError(
    "invalid",
    `Cannot continue response ${JSON.stringify(plainText(id, MAX_SHOWN_LENGTH))}: ${reasonGone(memory)}`,
    { param: "previous_response_id", code: "previous_response_not_found", rule: reasonGone(memory) },
  );
}

function itemGone(id: string, { index, memory }: { index: number; memory: ResponseMemory }): GatewayError {
  return new GatewayError("invalid", `Cannot find item ${JSON.stringify(id)}: ${reasonGone(memory)}`, {
    param: `input[${index}]`,
    code: "item_not_found",
    rule: reasonGone(memory),
  });
}

function tooManyCompactions(index: number): GatewayError {
  return new GatewayError("invalid", `Cannot decrypt more than ${MAX_COMPACTIONS} compaction items of one request`, {
    param: `input[${index}]`,
  });
}

function reasonGone({ limits }: ResponseMemory): string {
  const why = limits === null
    ? "this gateway does not store responses"
    : `responses are kept for ${limits.minutes} minutes after their last use, for the key that made them, as long as ` +
      "there is room";
  return `${why}. Send the items themselves; a client whose requests say "store": false does so`;
}

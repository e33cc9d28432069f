/** Resolves the references in a body, and creates the keeper that stores its answer for later requests. */
import { Buffer } from "node:buffer";
import { documentSize, type Edits, type Json, memberText, type ScanPlan, spliceMembers } from "../json/mod.ts";
import { utf8Bytes } from "../text.ts";
import type { AnswerKeeper, KeptAnswer } from "../protocols/codec.ts";
import { MAX_ID_LENGTH } from "../recall/recall.ts";
import type { KeptItem, KeptResponse } from "../recall/recent_responses.ts";
import { bodyTooLarge } from "../server/head.ts";
import { JSON_MEMORY_FACTOR } from "../server/body_budget.ts";
import { headOf, type JsonBody, parseBody } from "../server/parse_body.ts";
import type { RouteContext } from "../server/router.ts";
import { isSealed } from "./compaction_items.ts";
import { compactsUpstream } from "./compacts_itself.ts";
import {
  isBareReasoning,
  isReference,
  joinItems,
  recallConversation,
  resolveItems,
  sharedInput,
} from "./resolve_references.ts";
import type { ResponseMemory } from "./response_memory.ts";

const OPEN_ARRAY = 0x5b;

/** The parts of a request's context that changing a body needs. */
export type BodyContext = Pick<RouteContext, "gateway" | "body"> & { scan?: ScanPlan | undefined };

/** A body without references. */
export interface RecalledBody {
  body: JsonBody;
  /** Stores the answer for later requests. */
  keeper: AnswerKeeper;
  /** Returns a keeper that stores the answer as a replacement for the whole conversation before it. */
  compactionKeeper: () => AnswerKeeper;
}

/** The items that a request adds to the conversation `base`: JSON texts separated by commas. */
type NewInput = Pick<KeptResponse, "base"> & { input: () => Uint8Array<ArrayBuffer> };

/**
 * Replaces the references in a body by the items that they refer to.
 * @throws {GatewayError} `invalid` for references to unknown items; `too_large`; `limited`
 */
export async function recallBody(
  body: JsonBody,
  memory: ResponseMemory,
  context: BodyContext,
): Promise<RecalledBody> {
  // Input that a scan recognized contains no references, so it is not parsed.
  const head = headOf(body);
  const { previous_response_id: previous, input } = head;
  const { json_body_bytes: limit } = context.gateway.config.resource_limits;
  let recalledBytes = 0;
  const take = (bytes: number) => {
    if ((recalledBytes += bytes) > limit) throw bodyTooLarge(limit);
    context.body.reserve(bytes * JSON_MEMORY_FACTOR, 0);
  };
  const resolve = (items: string) =>
    resolveItems(items, memory, { take, compactsUpstream: compactsUpstream(head, context.gateway) });
  const withInput = (items: string) =>
    editBody(body, { input: `[${items}]`, previous_response_id: undefined }, context, recalledBytes);
  const recalled = (resolved: JsonBody, added: NewInput): RecalledBody => ({
    body: resolved,
    keeper: keeperOf(body, hasHiddenBase(body, added, memory) ? { input: () => inputBytes(resolved) } : added, memory),
    compactionKeeper: () => keeperOf(body, { input: () => new Uint8Array() }, memory),
  });
  if (typeof previous === "string" && previous !== "") {
    const items = inputItems(body);
    const allItems = joinItems([await recallConversation(previous, memory, take), items]);
    const { text } = await resolve(allItems);
    const base = { id: previous, withOutput: true };
    return recalled(await withInput(text), { base, input: () => utf8Bytes(items) });
  }
  const isResolved = (item: Json) => isReference(item) || isSealed(item) || isBareReasoning(item);
  if (!Array.isArray(input) || !input.some(isResolved)) {
    return recalled(body, { input: () => inputBytes(body) });
  }
  const items = inputItems(body);
  const { text, last } = await resolve(items);
  return recalled(await withInput(text), await addedItems(items, last, memory));
}

/**
 * Returns the items without those of the response `last`, because agents send their whole conversation with each
 * request.
 */
async function addedItems(items: string, last: KeptResponse | undefined, memory: ResponseMemory): Promise<NewInput> {
  // UTF-8 has at most three bytes per code unit, so that longer inputs cannot begin these items.
  const earlierInput = last === undefined ? undefined : await sharedInput(last, memory, 3 * items.length);
  if (
    last === undefined || earlierInput === undefined || earlierInput === "" || !items.startsWith(`${earlierInput},`)
  ) {
    return { input: () => utf8Bytes(items) };
  }
  return { base: { id: last.id, withOutput: false }, input: () => utf8Bytes(items.slice(earlierInput.length + 1)) };
}

/** True if the answer is stored for all connections of the key, but only this one can find the response before it. */
function hasHiddenBase(body: JsonBody, { base }: NewInput, memory: ResponseMemory): boolean {
  return base !== undefined && headOf(body).store !== false && memory.isLocal(base.id);
}

function keeperOf(body: JsonBody, { base, input }: NewInput, memory: ResponseMemory): AnswerKeeper {
  const { previous_response_id: previous, store } = headOf(body);
  const isStored = memory.limits !== null && store !== false;
  const keeper = { isStored, ...(typeof previous === "string" && previous !== "" && { previousId: previous }) };
  if (memory.limits === null || !isStored && !memory.keepsAll) return keeper;
  let writing: Promise<void> | undefined;
  return {
    ...keeper,
    isTaken: (id) => memory.has(id),
    keep({ id, output }) {
      const response = { id, ...(base !== undefined && { base }), input: input(), ...keptOutput(output) };
      writing = memory.put(response, isStored);
    },
    written: () => writing,
  };
}

function keptOutput(output: KeptAnswer["output"]): Pick<KeptResponse, "output" | "items"> {
  const bytes = utf8Bytes(output.map(({ text }) => text).join(","));
  const items: KeptItem[] = [];
  let at = 0;
  for (const { id, text } of output) {
    const end = at + Buffer.byteLength(text);
    if (id !== undefined && id.length <= MAX_ID_LENGTH) items.push({ id, start: at, end });
    at = end + 1;
  }
  return { output: bytes, items };
}

/**
 * Changes members of a body, and parses it again.
 * @param reservedBytes bytes of the edits for which memory is reserved
 * @throws {GatewayError} `too_large`, `limited`
 */
export async function editBody(
  body: JsonBody,
  edits: Edits,
  { gateway, body: sent, scan }: BodyContext,
  reservedBytes = 0,
): Promise<JsonBody> {
  const bytes = utf8Bytes(spliceMembers(body, edits));
  const { json_body_bytes: limit } = gateway.config.resource_limits;
  if (bytes.length > limit) throw bodyTooLarge(limit);
  const growth = bytes.length - documentSize(body) - reservedBytes;
  if (growth > 0) sent.reserve(growth * JSON_MEMORY_FACTOR, 0);
  return await parseBody(bytes, scan);
}

/**
 * Returns the items of a body's input as JSON texts separated by commas. An input that is a string becomes one item.
 */
export function inputItems(body: JsonBody): string {
  const text = memberText(body, "input") ?? "[]";
  return text.startsWith("[") ? text.slice(1, -1).trim() : `{"role":"user","content":${text}}`;
}

/** Returns the same as `inputItems` in UTF-8, without decoding the body if possible; white space around stays. */
function inputBytes(body: JsonBody): Uint8Array<ArrayBuffer> {
  const { utf8 } = body;
  const member = utf8?.members.find(({ name }) => name === "input");
  if (utf8 === undefined || member === undefined || utf8.bytes[member.start] !== OPEN_ARRAY) {
    return utf8Bytes(inputItems(body));
  }
  return utf8.bytes.slice(member.start + 1, member.end - 1);
}

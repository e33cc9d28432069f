/** Reads reasoning of answers: plain text under several names, and `reasoning_details`, whole or in pieces. */
import type { Signature } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { numberOf, objectsOf, present, stringOf } from "../members.ts";
import type { BlockQueue, QueuedBlock } from "./block_queue.ts";
import { signatureOf } from "./reasoning_details.ts";

/** Members with reasoning as plain text; the first non-empty one counts. */
const PLAIN = ["reasoning_content", "reasoning", "thinking"] as const;

/** Most characters of a signature that comes in pieces. */
const MAX_SIGNATURE = 4_194_304;

/** The incomplete entry of `reasoning_details`. */
interface Detail {
  block: QueuedBlock;
  type: Json | undefined;
  index: number | undefined;
  id: string | undefined;
}

/** Reads the reasoning of one answer. */
export class ReasoningReader {
  readonly #queue: BlockQueue;
  /** The member that came first: the other one repeats it. Details give their signatures either way. */
  #lead: "plain" | "details" | undefined;
  #plain: QueuedBlock | undefined;
  #detail: Detail | undefined;

  constructor(queue: BlockQueue) {
    this.#queue = queue;
  }

  push(delta: JsonObject): void {
    const plain = plainText(delta);
    // Most deltas have none.
    if (plain === undefined && !Array.isArray(delta.reasoning_details)) return;
    const details = objectsOf(delta.reasoning_details);
    const inDetails = details.some((entry) => stringOf(entry.text) || stringOf(entry.summary));
    if (plain !== undefined && !(inDetails && this.#lead !== "plain")) this.pushText(plain);
    details.forEach((entry, at) => this.#take(entry, at === 0));
  }

  /** Adds plain reasoning text. */
  pushText(text: string): void {
    if (text === "" || this.#lead === "details") return;
    this.#lead = "plain";
    if (!this.#isLast(this.#plain)) this.#plain = this.#queue.add({ type: "reasoning" }, { done: true });
    this.#queue.append(this.#plain, text);
  }

  #take(entry: JsonObject, first: boolean): void {
    switch (entry.type) {
      case "reasoning.text":
        return this.#text(entry, { first, text: stringOf(entry.text) ?? "", signature: signatureOf(entry) });
      case "reasoning.summary":
        return this.#text(entry, { first, text: stringOf(entry.summary) ?? "", signature: undefined });
      case "reasoning.encrypted":
        return this.#seal(entry, first);
      default:
        if (stringOf(entry.type) !== undefined) {
          this.#queue.add({ type: "vendor_specific", from: "chat", value: entry }, { done: true });
        }
    }
  }

  #text(entry: JsonObject, piece: { first: boolean; text: string; signature: Signature | undefined }): void {
    const { signature } = piece;
    // Plain reasoning contains the text already.
    const text = this.#lead === "plain" ? "" : piece.text;
    if (text === "" && signature === undefined) return;
    if (text !== "") this.#lead = "details";
    const open = this.#openDetail();
    const same = open !== undefined && this.#continues(open, entry, piece.first) &&
      (text === "" || open.block.signature === undefined);
    const nextSummary = open?.type === "reasoning.summary" && entry.type === open.type &&
      open.id === stringOf(entry.id) && open.block.signature === undefined;
    if (same || nextSummary) {
      this.#queue.append(open.block, same ? text : `\n\n${text}`);
      open.index = numberOf(entry.index);
      if (signature !== undefined) open.block.signature = signature;
      return;
    }
    if (signature !== undefined && this.#signPlain(signature)) return;
    const hidden = text === "" && (this.#lead === "plain" || signature?.issuer === "anthropic");
    const block = this.#queue.add({ type: "reasoning", ...(hidden && { hidden }) }, {
      done: true,
      ...present({ signature }),
    });
    this.#queue.append(block, text);
    this.#detail = { block, type: entry.type, index: numberOf(entry.index), id: stringOf(entry.id) };
  }

  /** Encrypted reasoning belongs to the preceding summary, or is a block of its own. */
  #seal(entry: JsonObject, first: boolean): void {
    const signature = signatureOf(entry);
    if (signature === undefined) return;
    const id = stringOf(entry.id);
    const open = this.#openDetail();
    if (open?.block.signature !== undefined && this.#continues(open, entry, first)) {
      const { value } = open.block.signature;
      if (value.length + signature.value.length > MAX_SIGNATURE) {
        throw new GatewayError("upstream", "The model's answer has a signature that is too long");
      }
      if (value !== signature.value) open.block.signature = { ...open.block.signature, value: value + signature.value };
      return;
    }
    const isSameDetail = open?.id === undefined || id === undefined || open.id === id;
    if (open?.type === "reasoning.summary" && open.block.signature === undefined && isSameDetail) {
      open.block.signature = signature;
      this.#detail = { block: open.block, type: entry.type, index: numberOf(entry.index), id };
      return;
    }
    if (this.#signPlain(signature)) return;
    const block = this.#queue.add({ type: "reasoning", hidden: true }, { done: true, signature });
    this.#detail = { block, type: entry.type, index: numberOf(entry.index), id };
  }

  /** Signs the open plain text with the first signature that belongs to it. */
  #signPlain(signature: Signature): boolean {
    if (!this.#isLast(this.#plain) || this.#plain.signature !== undefined) return false;
    this.#plain.signature = signature;
    return true;
  }

  #openDetail(): Detail | undefined {
    return this.#isLast(this.#detail?.block) ? this.#detail : undefined;
  }

  #isLast(block: QueuedBlock | undefined): block is QueuedBlock {
    return block !== undefined && this.#queue.tail === block;
  }

  /** Pieces of an entry have the same index. Without an index, the first entry of a delta continues the last one. */
  #continues(open: Detail, entry: JsonObject, first: boolean): boolean {
    const index = numberOf(entry.index);
    return open.type === entry.type && (index === undefined ? first && open.index === undefined : index === open.index);
  }
}

function plainText(delta: JsonObject): string | undefined {
  for (const name of PLAIN) {
    const text = delta[name];
    if (typeof text === "string" && text !== "") return text;
  }
  return undefined;
}

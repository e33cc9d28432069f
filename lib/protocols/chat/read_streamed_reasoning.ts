/** Reads the reasoning of chat answers: plain text under several names, and `reasoning_details`, whole or in pieces. */
import type { Signature } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { numberOf, objectsOf, present, stringOf } from "../members.ts";
import type { BlockQueue, QueuedBlock } from "./block_queue.ts";
import { isEncryptedPart, signatureOf } from "./reasoning_details.ts";

/** Members with reasoning as plain text. The first one that is not empty counts. */
const PLAIN_MEMBERS = ["reasoning_content", "reasoning", "thinking"] as const;

/** Limit of a signature that comes in pieces, in characters. */
const MAX_SIGNATURE_LENGTH = 4_194_304;

/** An entry of `reasoning_details` of which more pieces may follow. */
interface Detail {
  block: QueuedBlock;
  type: Json | undefined;
  index: number | undefined;
  id: string | undefined;
}

/** Reads the reasoning of one answer. */
export class ReasoningReader {
  readonly #queue: BlockQueue;
  /** The member whose text is read: the one that came first. The other one repeats it, but details have signatures. */
  #textSource: "plain" | "details" | undefined;
  #plain: QueuedBlock | undefined;
  #detail: Detail | undefined;

  constructor(queue: BlockQueue) {
    this.#queue = queue;
  }

  /** Reads the reasoning of one delta. @throws {GatewayError} `upstream`, if a signature is too long */
  push(delta: JsonObject): void {
    const plain = plainText(delta);
    // Most deltas have no reasoning.
    if (plain === undefined && !Array.isArray(delta.reasoning_details)) return;
    const details = objectsOf(delta.reasoning_details);
    const hasDetailText = details.some((entry) => stringOf(entry.text) || stringOf(entry.summary));
    if (plain !== undefined && !(hasDetailText && this.#textSource !== "plain")) this.addPlainText(plain);
    details.forEach((entry, index) => this.#readEntry(entry, index === 0));
  }

  addPlainText(text: string): void {
    if (text === "" || this.#textSource === "details") return;
    this.#textSource = "plain";
    if (!this.#isLast(this.#plain)) this.#plain = this.#queue.add({ type: "reasoning" }, { done: true });
    this.#queue.append(this.#plain, text);
  }

  #readEntry(entry: JsonObject, isFirst: boolean): void {
    switch (entry.type) {
      case "reasoning.text":
        return this.#readText(entry, { isFirst, text: stringOf(entry.text) ?? "", signature: signatureOf(entry) });
      case "reasoning.summary":
        return this.#readText(entry, { isFirst, text: stringOf(entry.summary) ?? "", signature: undefined });
      case "reasoning.encrypted":
        return this.#readEncrypted(entry, isFirst);
      default:
        if (stringOf(entry.type) !== undefined) {
          this.#queue.add({ type: "vendor_specific", from: "chat", value: entry }, { done: true });
        }
    }
  }

  #readText(entry: JsonObject, piece: { isFirst: boolean; text: string; signature: Signature | undefined }): void {
    const { signature } = piece;
    // Plain reasoning contains the text already.
    const text = this.#textSource === "plain" ? "" : piece.text;
    if (text === "" && signature === undefined) return;
    if (text !== "") this.#textSource = "details";
    const open = this.#openDetail();
    const isSameEntry = open !== undefined && this.#continues(open, entry, piece.isFirst) &&
      (text === "" || open.block.signature === undefined);
    const isNextSummary = open?.type === "reasoning.summary" && entry.type === open.type &&
      open.id === stringOf(entry.id) && open.block.signature === undefined;
    if (isSameEntry || isNextSummary) {
      this.#queue.append(open.block, isSameEntry ? text : `\n\n${text}`);
      open.index = numberOf(entry.index);
      if (signature !== undefined) open.block.signature = signature;
      return;
    }
    if (signature !== undefined && this.#signPlain(signature)) return;
    const hidden = text === "" && (this.#textSource === "plain" || signature?.issuer === "anthropic");
    const block = this.#queue.add({ type: "reasoning", ...(hidden && { hidden }) }, {
      done: true,
      ...present({ signature }),
    });
    this.#queue.append(block, text);
    this.#detail = { block, type: entry.type, index: numberOf(entry.index), id: stringOf(entry.id) };
  }

  /** Reads encrypted reasoning. It belongs to the text before it, or becomes a block of its own. */
  #readEncrypted(entry: JsonObject, isFirst: boolean): void {
    const signature = signatureOf(entry);
    if (signature === undefined) return;
    const id = stringOf(entry.id);
    const open = this.#openDetail();
    if (open?.block.signature !== undefined && this.#continues(open, entry, isFirst)) {
      const { value } = open.block.signature;
      if (value.length + signature.value.length > MAX_SIGNATURE_LENGTH) {
        throw new GatewayError("upstream", "The model's answer has a signature that is too long");
      }
      if (value !== signature.value) open.block.signature = { ...open.block.signature, value: value + signature.value };
      return;
    }
    if (open !== undefined && open.block.signature === undefined && isEncryptedPart(signature, id, open)) {
      open.block.signature = signature;
      this.#detail = { block: open.block, type: entry.type, index: numberOf(entry.index), id };
      return;
    }
    if (this.#signPlain(signature)) return;
    const block = this.#queue.add({ type: "reasoning", hidden: true }, { done: true, signature });
    this.#detail = { block, type: entry.type, index: numberOf(entry.index), id };
  }

  /** Adds the signature to the last block if that is plain text without one. @returns whether it did */
  #signPlain(signature: Signature): boolean {
    if (!this.#isLast(this.#plain) || this.#plain.signature !== undefined) return false;
    this.#plain.signature = signature;
    return true;
  }

  /** The last entry, if its block is still the last one. */
  #openDetail(): Detail | undefined {
    return this.#isLast(this.#detail?.block) ? this.#detail : undefined;
  }

  #isLast(block: QueuedBlock | undefined): block is QueuedBlock {
    return block !== undefined && this.#queue.tail === block;
  }

  /**
   * True if an entry is a further piece of the open one. Pieces have the same index. Without an index, the first entry
   * of a delta continues the last entry.
   */
  #continues(open: Detail, entry: JsonObject, isFirst: boolean): boolean {
    const index = numberOf(entry.index);
    return open.type === entry.type &&
      (index === undefined ? isFirst && open.index === undefined : index === open.index);
  }
}

function plainText(delta: JsonObject): string | undefined {
  for (const name of PLAIN_MEMBERS) {
    const text = delta[name];
    if (typeof text === "string" && text !== "") return text;
  }
  return undefined;
}

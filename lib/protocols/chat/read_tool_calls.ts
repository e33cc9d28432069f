/** Reads tool calls from deltas. */
import { callSignatureId, chatCallSignature } from "../canonical/signature.ts";
import { GatewayError } from "../../errors.ts";
import { type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { objectOf, objectsOf, stringOf } from "../members.ts";
import { type BegunCall, CallFinder, functionOf } from "./call_finder.ts";
import type { BlockQueue, QueuedBlock } from "./block_queue.ts";

/** Limit of arguments that come before the name of the tool, in characters. */
const MAX_EARLY_ARGUMENTS = 65_536;

interface ReadCall {
  name: string | undefined;
  custom: boolean;
  /** Present once the name is known: a call without a name is dropped. */
  block: QueuedBlock | undefined;
  /** Arguments that came before the name. */
  earlyArguments: string;
  /** True once there are arguments besides white space. */
  hasArguments: boolean;
}

/** Reads the calls of one answer. */
export class ToolCallReader {
  readonly #queue: BlockQueue;
  readonly #issuer: string;
  readonly #finder = new CallFinder();
  readonly #calls = new Map<BegunCall, ReadCall>();
  readonly #ids = new Set<string>();

  /** @param issuer issuer of the calls' signatures */
  constructor(queue: BlockQueue, issuer: string) {
    this.#queue = queue;
    this.#issuer = issuer;
  }

  /** Number of calls that have a name, which are those in the answer. */
  get count(): number {
    return this.#ids.size;
  }

  /** True while a call has begun arguments that are incomplete. */
  get hasOpenCall(): boolean {
    for (const [{ endFinder }, { block, custom, hasArguments }] of this.#calls) {
      if (block !== undefined && !custom && hasArguments && !endFinder.complete) return true;
    }
    return false;
  }

  /**
   * Reads the `tool_calls` of one delta.
   * @param answerId id of the answer, from which missing call ids are derived
   * @throws {GatewayError} `upstream`, for pieces that cannot be assigned to calls
   */
  push(value: Json | undefined, answerId: string): void {
    if (value === undefined || value === null) return;
    const callsOfDelta = new Set<BegunCall>();
    for (const entry of objectsOf(value)) this.#readPiece(this.#finder.find(entry, callsOfDelta), { entry, answerId });
  }

  /** Reads a piece of the deprecated `function_call`, of which an answer has only one. */
  pushFunction(value: Json | undefined, answerId: string): void {
    const inner = objectOf(value);
    if (inner !== undefined) this.push([{ index: -1, type: "function", function: inner }], answerId);
  }

  #readPiece(begun: BegunCall, { entry, answerId }: { entry: JsonObject; answerId: string }): void {
    let call = this.#calls.get(begun);
    if (call === undefined) {
      const custom = entry.type === "custom" || objectOf(entry.custom) !== undefined;
      call = { name: undefined, custom, block: undefined, earlyArguments: "", hasArguments: false };
      this.#calls.set(begun, call);
    }
    const inner = functionOf(entry);
    call.name ??= stringOf(inner.name) || undefined;
    const piece = call.earlyArguments + pieceOf(call.custom ? inner.input : inner.arguments, call);
    call.earlyArguments = "";
    if (call.name === undefined) {
      call.earlyArguments = piece;
      if (piece.length > MAX_EARLY_ARGUMENTS) {
        throw new GatewayError("upstream", "The model's answer calls a tool without a name");
      }
      return;
    }
    call.block ??= this.#openBlock(call.name, { id: begun.id, custom: call.custom, entry, answerId });
    if (call.custom) this.#queue.append(call.block, piece);
    else this.#addArguments(call, { block: call.block, piece, isComplete: begun.endFinder.complete });
  }

  #openBlock(
    name: string,
    { id: ownId, custom, entry, answerId }:
      & Pick<BegunCall, "id">
      & Pick<ReadCall, "custom">
      & { entry: JsonObject; answerId: string },
  ): QueuedBlock {
    const id = this.#uniqueId(ownId, answerId);
    // Google's OpenAI-compatible endpoint signs calls.
    const value = chatCallSignature(entry);
    if (value !== undefined) {
      const signature = { issuer: this.#issuer, value, id: callSignatureId(id) };
      this.#queue.add({ type: "reasoning", hidden: true }, { done: true, signature });
    }
    // The end of a custom tool's input cannot be recognized, so the next block ends it.
    return this.#queue.add({ type: "tool_call", id, name, ...(custom && { custom }) }, { done: custom });
  }

  #uniqueId(id: string | undefined, answerId: string): string {
    const base = id ??
      ["call", answerId.slice(-64).replace(/[^A-Za-z0-9_-]/g, "").slice(-40)].filter((part) => part !== "").join("_");
    let unique = id ?? `${base}_${this.#ids.size}`;
    for (let next = this.#ids.size; this.#ids.has(unique); next++) unique = `${base}_${next}`;
    this.#ids.add(unique);
    return unique;
  }

  #addArguments(
    call: ReadCall,
    { block, piece, isComplete }: { block: QueuedBlock; piece: string; isComplete: boolean },
  ): void {
    if (!call.hasArguments || block.sequence.ended) {
      // Blank arguments count as none, and white space after complete ones is dropped.
      if (piece.trim() === "") return;
      if (block.sequence.ended) {
        throw new GatewayError("upstream", "The model's answer mixes up the arguments of its calls");
      }
    }
    call.hasArguments = true;
    this.#queue.append(block, piece);
    if (isComplete && !block.done) {
      block.done = true;
      this.#queue.advance();
    }
  }
}

/**
 * Returns a piece of the arguments. Some upstreams send them as an object, and may repeat it; only the first counts.
 */
function pieceOf(value: Json | undefined, { hasArguments }: ReadCall): string {
  if (typeof value === "string") return value;
  const argumentsObject = objectOf(value);
  return argumentsObject === undefined || hasArguments ? "" : writeJson(argumentsObject);
}

/** Reads tool calls from deltas. Upstreams number the pieces of calls in different ways, or not at all. */
import { callSignatureId, chatCallSignature } from "../canonical/signature.ts";
import { GatewayError } from "../../errors.ts";
import { type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { COUNTS } from "../fields.ts";
import { numberOf, objectOf, objectsOf, stringOf } from "../members.ts";
import { type JsonEndFinder, jsonEndFinder } from "./json_end_finder.ts";
import type { BlockQueue, QueuedBlock } from "./block_queue.ts";

/** Limit of arguments that come before the name of the tool, in characters. */
const MAX_EARLY_ARGUMENTS = 65_536;

interface Call {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  custom: boolean;
  /** Present once the name is known: a call without a name is dropped. */
  block: QueuedBlock | undefined;
  /** Arguments that came before the name. */
  earlyArguments: string;
  endFinder: JsonEndFinder;
  /** True once there are arguments besides white space. */
  hasArguments: boolean;
}

/** Reads the calls of one answer. */
export class ToolCallReader {
  readonly #queue: BlockQueue;
  readonly #issuer: string;
  readonly #calls: Call[] = [];
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
    return this.#calls.some(({ block, custom, hasArguments, endFinder }) =>
      block !== undefined && !custom && hasArguments && !endFinder.complete
    );
  }

  /**
   * Reads the `tool_calls` of one delta.
   * @param answerId id of the answer, from which missing call ids are derived
   * @throws {GatewayError} `upstream`, for pieces that cannot be assigned to calls
   */
  push(value: Json | undefined, answerId: string): void {
    if (value === undefined || value === null) return;
    const callsOfDelta = new Set<Call>();
    for (const entry of objectsOf(value)) {
      const call = this.#findCall(entry, callsOfDelta) ?? this.#addCall(entry);
      callsOfDelta.add(call);
      this.#readPiece(call, { entry, answerId });
    }
  }

  /** Reads a piece of the deprecated `function_call`, of which an answer has only one. */
  pushFunction(value: Json | undefined, answerId: string): void {
    const inner = objectOf(value);
    if (inner !== undefined) this.push([{ index: -1, type: "function", function: inner }], answerId);
  }

  /**
   * Returns the call of a piece: that with its index, else with its id, else the last one; undefined for a new call. A
   * known index begins a new call if it comes with another id, or with a name again and no id.
   */
  #findCall(entry: JsonObject, callsOfDelta: ReadonlySet<Call>): Call | undefined {
    const index = indexOf(entry);
    const id = stringOf(entry.id) || undefined;
    const inner = innerOf(entry);
    const name = stringOf(inner.name) || undefined;
    if (index === undefined) {
      const known = id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
      return known ?? (id === undefined && name === undefined ? this.#calls.at(-1) : undefined);
    }
    const known = this.#calls.findLast((call) => call.index === index);
    if (known === undefined) {
      const last = this.#calls.at(-1);
      return id === undefined && name === undefined && last?.index === undefined ? last : undefined;
    }
    if (name === undefined) return known;
    const isOtherId = id !== undefined && known.id !== undefined && id !== known.id;
    const isRepeated = id === undefined &&
      (callsOfDelta.has(known) || (known.endFinder.complete && !isBlank(inner.arguments)));
    return isOtherId || isRepeated ? undefined : known;
  }

  #addCall(entry: JsonObject): Call {
    if (this.#calls.length >= COUNTS.parts) {
      throw new GatewayError("upstream", "The model's answer has too many calls", { fault: "oversized" });
    }
    const call: Call = {
      index: indexOf(entry),
      id: undefined,
      name: undefined,
      custom: entry.type === "custom" || objectOf(entry.custom) !== undefined,
      block: undefined,
      earlyArguments: "",
      endFinder: jsonEndFinder(),
      hasArguments: false,
    };
    this.#calls.push(call);
    return call;
  }

  #readPiece(call: Call, { entry, answerId }: { entry: JsonObject; answerId: string }): void {
    const inner = innerOf(entry);
    call.id ??= stringOf(entry.id) || undefined;
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
    call.block ??= this.#openBlock(call.name, { call, entry, answerId });
    this.#addArguments(call, { block: call.block, piece });
  }

  #openBlock(
    name: string,
    { call, entry, answerId }: { call: Call; entry: JsonObject; answerId: string },
  ): QueuedBlock {
    const id = this.#uniqueId(call.id, answerId);
    // Google's OpenAI-compatible endpoint signs calls.
    const value = chatCallSignature(entry);
    if (value !== undefined) {
      const signature = { issuer: this.#issuer, value, id: callSignatureId(id) };
      this.#queue.add({ type: "reasoning", hidden: true }, { done: true, signature });
    }
    // The end of a custom tool's input cannot be recognized, so the next block ends it.
    return this.#queue.add({ type: "tool_call", id, name, ...(call.custom && { custom: true }) }, {
      done: call.custom,
    });
  }

  #uniqueId(id: string | undefined, answerId: string): string {
    const base = id ??
      ["call", answerId.slice(-64).replace(/[^A-Za-z0-9_-]/g, "").slice(-40)].filter((part) => part !== "").join("_");
    let unique = id ?? `${base}_${this.#ids.size}`;
    for (let next = this.#ids.size; this.#ids.has(unique); next++) unique = `${base}_${next}`;
    this.#ids.add(unique);
    return unique;
  }

  #addArguments(call: Call, { block, piece }: { block: QueuedBlock; piece: string }): void {
    if (call.custom) return this.#queue.append(block, piece);
    if (!call.hasArguments || block.sequence.ended) {
      // Blank arguments count as none, and white space after complete ones is dropped.
      if (piece.trim() === "") return;
      if (block.sequence.ended) {
        throw new GatewayError("upstream", "The model's answer mixes up the arguments of its calls");
      }
    }
    call.hasArguments = true;
    call.endFinder.push(piece);
    this.#queue.append(block, piece);
    if (call.endFinder.complete && !block.done) {
      block.done = true;
      this.#queue.advance();
    }
  }
}

function innerOf(entry: JsonObject): JsonObject {
  return objectOf(entry.function) ?? objectOf(entry.custom) ?? {};
}

function indexOf(entry: JsonObject): number | undefined {
  const index = numberOf(entry.index);
  return index !== undefined && Number.isInteger(index) ? index : undefined;
}

function isBlank(value: Json | undefined): boolean {
  return typeof value === "string" ? value.trim() === "" : objectOf(value) === undefined;
}

/**
 * Returns a piece of the arguments. Some upstreams send them as an object, and may repeat it; only the first counts.
 */
function pieceOf(value: Json | undefined, { hasArguments }: Call): string {
  if (typeof value === "string") return value;
  const argumentsObject = objectOf(value);
  return argumentsObject === undefined || hasArguments ? "" : writeJson(argumentsObject);
}

/** Reads tool calls from deltas, which upstreams number and name in many ways, or not at all. */
import { callSignatureId } from "../canonical/signature.ts";
import { GatewayError } from "../../errors.ts";
import { type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { COUNTS } from "../fields.ts";
import { numberOf, objectOf, objectsOf, stringOf } from "../members.ts";
import { type JsonEndFinder, jsonEndFinder } from "./json_end_finder.ts";
import type { BlockQueue, QueuedBlock } from "./block_queue.ts";

/** Most characters of arguments before the name of the tool. */
const MAX_EARLY = 65_536;

interface Call {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  custom: boolean;
  /** Present once the name is known: a call without a name is dropped. */
  block: QueuedBlock | undefined;
  early: string;
  end: JsonEndFinder;
  /** True after the first character that is not white space. */
  hasBegun: boolean;
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

  get count(): number {
    return this.#ids.size;
  }

  /** True while the arguments of a call have begun and are incomplete. */
  get cut(): boolean {
    return this.#calls.some(({ block, custom, hasBegun, end }) =>
      block !== undefined && !custom && hasBegun && !end.complete
    );
  }

  /**
   * Reads the `tool_calls` of one delta.
   * @param answerId id of the answer, from which missing call ids are derived
   * @throws {GatewayError} `upstream`, for pieces that cannot be told apart
   */
  push(value: Json | undefined, answerId: string): void {
    if (value === undefined || value === null) return;
    const touched = new Set<Call>();
    for (const entry of objectsOf(value)) {
      const call = this.#find(entry, touched) ?? this.#add(entry);
      touched.add(call);
      this.#apply(call, { entry, answerId });
    }
  }

  /** Reads a deprecated `function_call`: one per answer. */
  pushFunction(value: Json | undefined, answerId: string): void {
    const inner = objectOf(value);
    if (inner !== undefined) this.push([{ index: -1, type: "function", function: inner }], answerId);
  }

  /**
   * Finds the call of a piece: by index, else by id, else the last one. A known index with another id, or with a name
   * again and no id, is a new call.
   */
  #find(entry: JsonObject, touched: ReadonlySet<Call>): Call | undefined {
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
    const renumbered = id !== undefined && known.id !== undefined && id !== known.id;
    const repeated = id === undefined && (touched.has(known) || (known.end.complete && !isBlank(inner.arguments)));
    return renumbered || repeated ? undefined : known;
  }

  #add(entry: JsonObject): Call {
    if (this.#calls.length >= COUNTS.parts) {
      throw new GatewayError("upstream", "The model's answer has too many calls", { fault: "oversized" });
    }
    const call: Call = {
      index: indexOf(entry),
      id: undefined,
      name: undefined,
      custom: entry.type === "custom" || objectOf(entry.custom) !== undefined,
      block: undefined,
      early: "",
      end: jsonEndFinder(),
      hasBegun: false,
    };
    this.#calls.push(call);
    return call;
  }

  #apply(call: Call, { entry, answerId }: { entry: JsonObject; answerId: string }): void {
    const inner = innerOf(entry);
    call.id ??= stringOf(entry.id) || undefined;
    call.name ??= stringOf(inner.name) || undefined;
    const piece = call.early + pieceOf(call.custom ? inner.input : inner.arguments, call);
    call.early = "";
    if (call.name === undefined) {
      call.early = piece;
      if (piece.length > MAX_EARLY) {
        throw new GatewayError("upstream", "The model's answer calls a tool without its name");
      }
      return;
    }
    call.block ??= this.#open(call.name, { call, entry, answerId });
    this.#feed(call, { block: call.block, piece });
  }

  #open(
    name: string,
    { call, entry, answerId }: { call: Call; entry: JsonObject; answerId: string },
  ): QueuedBlock {
    const id = this.#uniqueId(call.id, answerId);
    // Google's OpenAI-compatible endpoint signs calls.
    const value = stringOf(objectOf(objectOf(entry.extra_content)?.google)?.thought_signature);
    if (value) {
      const signature = { issuer: this.#issuer, value, id: callSignatureId(id) };
      this.#queue.add({ type: "reasoning", hidden: true }, { done: true, signature });
    }
    // The end of a custom tool's input cannot be recognized.
    return this.#queue.add({ type: "tool_call", id, name, ...(call.custom && { custom: true }) }, {
      done: call.custom,
    });
  }

  #uniqueId(id: string | undefined, answerId: string): string {
    const stem = id ??
      ["call", answerId.replace(/[^A-Za-z0-9_-]/g, "").slice(-40)].filter((part) => part !== "").join("_");
    let unique = id ?? `${stem}_${this.#ids.size}`;
    for (let next = this.#ids.size; this.#ids.has(unique); next++) unique = `${stem}_${next}`;
    this.#ids.add(unique);
    return unique;
  }

  #feed(call: Call, { block, piece }: { block: QueuedBlock; piece: string }): void {
    if (call.custom) return this.#queue.append(block, piece);
    if (!call.hasBegun || block.ended) {
      // Blank arguments count as none, and white space after complete ones is dropped.
      if (piece.trim() === "") return;
      if (block.ended) {
        throw new GatewayError("upstream", "The model's answer mixes up the arguments of its calls");
      }
    }
    call.hasBegun = true;
    call.end.push(piece);
    this.#queue.append(block, piece);
    if (call.end.complete && !block.done) {
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

/** Arguments are text; some upstreams send an object, whole and sometimes repeatedly. */
function pieceOf(value: Json | undefined, { hasBegun }: Call): string {
  if (typeof value === "string") return value;
  const parsed = objectOf(value);
  return parsed === undefined || hasBegun ? "" : writeJson(parsed);
}

/** Reads the function calls of an answer, and gives them ids. */
import { createHash } from "node:crypto";
import { GatewayError } from "../../errors.ts";
import { isObject, type JsonObject, writeJson } from "../../json/mod.ts";
import type { PrewrittenJson } from "../codec.ts";
import { nonEmptyStringOf } from "../members.ts";

/** Limit of calls in one answer. */
const MAX_CALLS = 1_024;

/** Limit of an id that is kept, in UTF-16 code units. */
export const MAX_ID_LENGTH = 256;

/** Limit of arguments from which an id is derived, in characters. Of longer ones, both ends of this length are used. */
const SEED_LENGTH = 65_536;

/** Hexadecimal digits of the hash in an id: 64 bits. */
const HASH_LENGTH = 16;

/** Reads the calls of one answer. Each comes in one piece, and often without an id. */
export class FunctionCallReader {
  readonly #ids = new Set<string>();

  get count(): number {
    return this.#ids.size;
  }

  /**
   * Reads a `functionCall`. A missing or repeated id is replaced by one that is derived from the answer's id, the
   * signature and the call, so that the same answer always gets the same ids.
   * @throws {GatewayError} `upstream`, for a call without a name and for too many calls
   */
  read(
    call: JsonObject,
    { responseId, signature, texts }: {
      responseId: string | undefined;
      signature: string | undefined;
      texts: PrewrittenJson | undefined;
    },
  ): { id: string; name: string; arguments: string } {
    const name = nonEmptyStringOf(call.name);
    if (name === undefined) throw new GatewayError("upstream", "The model called a tool without a name");
    if (this.count === MAX_CALLS) {
      throw new GatewayError("upstream", `The model made more than ${MAX_CALLS} calls in one answer`, {
        fault: "oversized",
      });
    }
    const text = (isObject(call.args) ? texts?.get(call.args) : undefined) ?? writeJson(call.args ?? {});
    const id = this.#uniqueId(
      nonEmptyStringOf(call.id),
      () => writeJson([responseId ?? null, signature ?? null, name, ...seedOf(text)]),
    );
    this.#ids.add(id);
    return { id, name, arguments: text };
  }

  #uniqueId(given: string | undefined, seed: () => string): string {
    if (given !== undefined && given.length <= MAX_ID_LENGTH && !this.#ids.has(given)) return given;
    const derived = `call_${this.count}_${createHash("sha256").update(seed()).digest("hex").slice(0, HASH_LENGTH)}`;
    let id = derived;
    for (let suffix = 1; this.#ids.has(id); suffix++) id = `${derived}_${suffix}`;
    return id;
  }
}

function seedOf(text: string): (string | number)[] {
  return text.length <= SEED_LENGTH ? [text] : [text.slice(0, SEED_LENGTH), text.length, text.slice(-SEED_LENGTH)];
}

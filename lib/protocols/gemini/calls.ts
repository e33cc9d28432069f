/** Reads function calls. They come whole, often without an id. */
import { createHash } from "node:crypto";
import { GatewayError } from "../../errors.ts";
import { type JsonObject, writeJson } from "../../json.ts";
import { wordsOf } from "./members.ts";

/** Most calls of one answer. */
const MAX_CALLS = 1_024;

/** Longest id that is kept as it came, in UTF-16 code units. */
const ID_LENGTH = 256;

/** 64 bits. */
const HASH_LENGTH = 16;

/** A call as the canonical form has it. */
export interface Call {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** Reads the calls of one answer and gives each an id of its own. */
export class CallReader {
  readonly #ids = new Set<string>();

  /** How many calls were read. */
  get count(): number {
    return this.#ids.size;
  }

  /**
   * Reads a `functionCall`. An id that is missing or was used before is made: always the same for the same answer, and
   * another for the same call in another answer, as far as that has an id or the call a signature of its own.
   * @throws {GatewayError} `upstream`, for a call without a name and for more calls than an answer may have
   */
  read(call: JsonObject, { responseId, signature }: { responseId?: string; signature?: string }): Call {
    const name = wordsOf(call.name);
    if (name === undefined) throw new GatewayError("upstream", "The model called a tool without a name");
    if (this.count === MAX_CALLS) {
      throw new GatewayError("upstream", `The model made more than ${MAX_CALLS} calls in one answer`);
    }
    const text = writeJson(call.args ?? {});
    const id = this.#freeId(wordsOf(call.id), writeJson([responseId ?? null, signature ?? null, name, text]));
    this.#ids.add(id);
    return { id, name, arguments: text };
  }

  #freeId(given: string | undefined, seed: string): string {
    if (given !== undefined && given.length <= ID_LENGTH && !this.#ids.has(given)) return given;
    const made = `call_${this.count}_${createHash("sha256").update(seed).digest("hex").slice(0, HASH_LENGTH)}`;
    let id = made;
    for (let again = 1; this.#ids.has(id); again++) id = `${made}_${again}`;
    return id;
  }
}

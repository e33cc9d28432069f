/** Reads function calls. They come whole, often without an id. */
import { GatewayError } from "../../errors.ts";
import { type JsonObject, writeJson } from "../../json.ts";
import { wordsOf } from "./members.ts";

/** Most calls of one answer. */
const MAX_CALLS = 1_024;

/** Longest id that is kept as it came, in UTF-16 code units. */
const ID_LENGTH = 256;

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
   * Reads a `functionCall`. An id that is missing or was used before is made: from the answer's own id where it has one,
   * so that two answers with the same call differ, and always the same for the same answer.
   * @throws {GatewayError} `upstream`, for a call without a name and for more calls than an answer may have
   */
  read(call: JsonObject, responseId: string | undefined): Call {
    const name = wordsOf(call.name);
    if (name === undefined) throw new GatewayError("upstream", "The model called a tool without a name");
    if (this.count === MAX_CALLS) {
      throw new GatewayError("upstream", `The model made more than ${MAX_CALLS} calls in one answer`);
    }
    const text = writeJson(call.args ?? {});
    const id = this.#freeId(wordsOf(call.id), writeJson([responseId ?? null, name, text]));
    this.#ids.add(id);
    return { id, name, arguments: text };
  }

  #freeId(given: string | undefined, seed: string): string {
    if (given !== undefined && given.length <= ID_LENGTH && !this.#ids.has(given)) return given;
    const made = `call_${this.count}_${hash(seed)}`;
    let id = made;
    for (let again = 1; this.#ids.has(id); again++) id = `${made}_${again}`;
    return id;
  }
}

/** 64 bits of two FNV-1a sums over the UTF-16 code units, in base 36. */
function hash(text: string): string {
  let low = 0x811c9dc5;
  let high = 0x9747b28c;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit, 0x01000193) ^ (low >>> 15);
  }
  return `${(low >>> 0).toString(36)}${(high >>> 0).toString(36)}`;
}

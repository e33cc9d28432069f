/** JSON as values: parsed with limits and without loss, written back. */

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. `__proto__` is a key like any other. */
export interface JsonObject {
  [key: string]: Json | undefined;
}

/** What a parser accepts at most. */
export interface JsonLimits {
  /** Nesting of arrays and objects. */
  depth: number;
  /** Values of any kind in the whole text. */
  nodes: number;
  /** Keys of one object. */
  keys: number;
}

/** Limits for request bodies. */
export const JSON_LIMITS: JsonLimits = { depth: 64, nodes: 200_000, keys: 10_000 };

/** Text that is not JSON, or that is more than the limits allow. */
export class JsonError extends SyntaxError {
  override readonly name = "JsonError";
  /** Offset into the text, in UTF-16 code units, counted from 0. */
  readonly position: number;

  constructor(message: string, position: number) {
    super(message);
    this.position = position;
  }
}

/** True for a JSON object; false for arrays, `null` and numbers that are kept as text. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !("rawJSON" in value);
}

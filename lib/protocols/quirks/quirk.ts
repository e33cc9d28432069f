/**
 * The interface of a vendor's quirks, and helpers for them. Variants that the reader of answers knows need no quirk:
 * usage on any chunk or on one of its own, `reasoning` or `reasoning_content`, tool calls without an index, errors of
 * any shape.
 */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { Prompt, Protocol } from "../canonical/types.ts";
import type { Model } from "../../catalog/model.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Dialect } from "../upstream_codec.ts";

/** Differences of one vendor from OpenAI's chat API. Pure functions. */
export interface Quirk {
  /** Capabilities that differ from the protocol's own. */
  dialect?: Partial<Dialect>;
  /** Returns the issuer whose signatures a model reads, for vendors that host models of other vendors. */
  issuer?(model: string): string;
  /**
   * Rewrites a request body that the gateway or the client wrote, and adds to `dropped` what it leaves out. A member
   * that does not change keeps its identity (`===`), so that its text can be relayed as it is.
   * @param row the model's entry in the catalog
   */
  body?(body: JsonObject, prompt: Prompt, dropped: UnsupportedParameters, row: Pick<Model, "reasoning">): JsonObject;
  /** True if hosts may know members of OpenRouter's API; absent: requests with them are translated. */
  mayKnowOpenRouter?: true;
  /** True if `body` may change any message; absent: it changes only those of rare forms (`PlainSizes.hasRareForms`). */
  changesAllMessages?: true;
}

/** Returns the quirk for a protocol. Only chat has quirks: the other protocols are spoken only by their own vendors. */
export function quirkFor(quirk: Quirk, protocol: Protocol): Quirk {
  return protocol === "chat" ? quirk : {};
}

/** Returns an object without some members; the same object if it has none of them. */
export function omit(object: JsonObject, names: readonly string[]): JsonObject {
  let hasAny = false;
  for (const name of names) hasAny ||= Object.hasOwn(object, name);
  return hasAny ? Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name))) : object;
}

/** Renames a member, and replaces one that already has the new name. A member that is null is removed. */
export function rename(object: JsonObject, from: string, to: string): JsonObject {
  if (!Object.hasOwn(object, from)) return object;
  const value = object[from];
  const others = omit(object, [from]);
  return value === undefined || value === null ? others : { ...others, [to]: value };
}

/** Rewrites each message; returns the same body if no message changes. */
export function mapMessages(body: JsonObject, rewrite: (message: JsonObject) => JsonObject): JsonObject {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  let changed: Json[] | undefined;
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (!isObject(message)) continue;
    const rewritten = rewrite(message);
    if (rewritten === message) continue;
    changed ??= [...messages];
    changed[index] = rewritten;
  }
  return changed === undefined ? body : { ...body, messages: changed };
}

/** What one vendor says differently from OpenAI, whose words a chat request is written in. */
import type { Dropped } from "../../canonical/dropped.ts";
import type { Prompt } from "../../canonical/types.ts";
import type { Json, JsonObject } from "../../json.ts";
import { isObject } from "../../json.ts";
import type { Frame } from "../../protocols/codec.ts";
import type { Dialect } from "../../protocols/upstream_codec.ts";

/** The differences of one vendor. Pure. */
export interface Mend {
  /** What the vendor's dialect can say, where that differs from the protocol's own. */
  dialect?: Partial<Dialect>;
  /** Rewords a request body. What it has to leave out is named in `dropped`. */
  body?(body: JsonObject, prompt: Prompt, dropped: Dropped): JsonObject;
  /** Rewords a frame of the answer; `undefined` leaves it out. */
  frame?(frame: Frame): Frame | undefined;
}

/** An object without some of its members. */
export function omit(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** An object with a member under another name, in the same place. A member that has that name already wins. */
export function rename(object: JsonObject, from: string, to: string): JsonObject {
  if (object[from] === undefined) return object;
  if (object[to] !== undefined) return omit(object, [from]);
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name === from ? to : name, value]));
}

/** A body whose messages are reworded one by one. */
export function mapMessages(body: JsonObject, reword: (message: JsonObject) => JsonObject): JsonObject {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  return { ...body, messages: messages.map((message): Json => isObject(message) ? reword(message) : message) };
}

/** What one vendor says differently from OpenAI, whose words a chat request is written in. */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { Prompt } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Frame } from "../codec.ts";
import type { Dialect, UpstreamProtocol } from "../upstream_codec.ts";

/** The differences of one vendor. Pure. */
export interface Quirk {
  /** What the vendor's dialect can say, where that differs from the protocol's own. */
  dialect?: Partial<Dialect>;
  /** Whose signatures a model of this vendor reads, where it sells the models of others. */
  issuer?(model: string): string;
  /**
   * Rewords a request body: one that was written in OpenAI's words, or a client's own. What it has to leave out is named
   * in `dropped`. A member that needs no other words is given back as the same value, so that its text can stay.
   */
  body?(body: JsonObject, prompt: Prompt, dropped: UnsupportedParameters): JsonObject;
  /** Rewords a frame of the answer; `undefined` leaves it out. */
  frame?(frame: Frame): Frame | undefined;
}

/** What a vendor's mend is for a protocol. Vendors differ in chat only: the others are spoken by their own vendors. */
export function quirkFor(mend: Quirk, protocol: UpstreamProtocol): Quirk {
  return protocol === "chat" ? mend : {};
}

/** An object without some of its members; the object itself where it has none of them. */
export function omit(object: JsonObject, names: readonly string[]): JsonObject {
  let has = false;
  for (const name of names) has ||= Object.hasOwn(object, name);
  return has ? Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name))) : object;
}

/** An object with a member under another name. It takes the place of one that has that name already. */
export function rename(object: JsonObject, from: string, to: string): JsonObject {
  if (!Object.hasOwn(object, from)) return object;
  const value = object[from];
  const others = omit(object, [from]);
  return value === undefined || value === null ? others : { ...others, [to]: value };
}

/** A body whose messages are reworded one by one. Where none of them changes, it is the same body. */
export function mapMessages(body: JsonObject, reword: (message: JsonObject) => JsonObject): JsonObject {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  let reworded: Json[] | undefined;
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (!isObject(message)) continue;
    const said = reword(message);
    if (said === message) continue;
    reworded ??= [...messages];
    reworded[index] = said;
  }
  return reworded === undefined ? body : { ...body, messages: reworded };
}

import type { JsonObject } from "../../json/mod.ts";
import type { KeptAnswer } from "../codec.ts";
import { stringOf } from "../members.ts";

/** Returns an output item in the form in which it is kept for later requests. */
export function keptItem(item: JsonObject): KeptAnswer["output"][number] {
  const id = stringOf(item.id);
  return { text: JSON.stringify(item), ...(id !== undefined && { id }) };
}

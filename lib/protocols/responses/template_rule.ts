/** Events that differ in what they say, and in their number. */
import { isObject, type JsonObject } from "../../json/mod.ts";
import type { Likeness, Said } from "../alike.ts";

/** Pieces of text, of reasoning and of arguments. */
export const responsesTemplateRule: Likeness = {
  said(event: JsonObject): Said | undefined {
    if (Object.values(event).some(isObject)) return undefined;
    return typeof event.delta === "string" && event.delta !== "" ? { holder: event, name: "delta" } : undefined;
  },
  // OpenAI hides the length of what is said behind a text of chance.
  unread: ["sequence_number", "obfuscation"],
};

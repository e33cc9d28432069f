import { isObject, type JsonObject } from "../../json/mod.ts";
import type { TemplateRule, VariableMember } from "../frame_template.ts";

/** Applies to events with a text delta: text, reasoning and arguments. */
export const responsesTemplateRule: TemplateRule = {
  variableMember(event: JsonObject): VariableMember | undefined {
    if (Object.values(event).some(isObject)) return undefined;
    return typeof event.delta === "string" && event.delta !== "" ? { holder: event, name: "delta" } : undefined;
  },
  // OpenAI pads events with random text to hide the length of their content.
  unread: ["sequence_number", "obfuscation"],
};

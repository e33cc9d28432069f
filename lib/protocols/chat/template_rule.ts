import { isObject, type JsonObject } from "../../json/mod.ts";
import type { TemplateRule, VariableMember } from "../frame_template.ts";

const TEXT_MEMBERS = ["content", "reasoning_content", "reasoning", "thinking", "refusal"] as const;

/** Applies to chunks of one choice whose delta has text only; all other chunks are parsed one by one. */
export const chatTemplateRule: TemplateRule = {
  variableMember({ choices }: JsonObject): VariableMember | undefined {
    const [choice, ...others] = Array.isArray(choices) ? choices : [];
    if (!isObject(choice) || others.length > 0 || !isObject(choice.delta)) return undefined;
    const { delta } = choice;
    for (const member of Object.values(delta)) if (typeof member === "object" && member !== null) return undefined;
    for (const name of TEXT_MEMBERS) {
      if (typeof delta[name] === "string" && delta[name] !== "") return { holder: delta, name };
    }
    return undefined;
  },
  // OpenAI pads chunks with random text to hide the length of their content.
  unread: ["obfuscation"],
};

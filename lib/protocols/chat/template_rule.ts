import { isObject, type JsonObject } from "../../json/mod.ts";
import type { TemplateRule, VariableMember } from "../frame_template.ts";

const TEXT_MEMBERS = ["content", "reasoning_content", "reasoning", "thinking", "refusal"] as const;

/** Applies to chunks of one choice whose delta has text only; all other chunks are parsed one by one. */
export const chatTemplateRule: TemplateRule = {
  variableMember({ choices }: JsonObject): VariableMember | undefined {
    const [choice, ...others] = Array.isArray(choices) ? choices : [];
    if (!isObject(choice) || others.length > 0 || !isObject(choice.delta)) return undefined;
    const { delta } = choice;
    if (Object.values(delta).some((member) => typeof member === "object" && member !== null)) return undefined;
    const name = TEXT_MEMBERS.find((name) => typeof delta[name] === "string" && delta[name] !== "");
    return name === undefined ? undefined : { holder: delta, name };
  },
  // OpenAI pads chunks with random text to hide the length of their content.
  unread: ["obfuscation"],
};

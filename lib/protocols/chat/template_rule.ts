/** Chunks that differ in what they say, and in nothing else. */
import { isObject, type JsonObject } from "../../json/mod.ts";
import type { Likeness, Said } from "../alike.ts";

/** Members of a delta that say something. */
const SAID = ["content", "reasoning_content", "reasoning", "thinking", "refusal"] as const;

/** Chunks of one choice whose delta is words: calls, annotations and the like are read one by one. */
export const chatTemplateRule: Likeness = {
  said({ choices }: JsonObject): Said | undefined {
    const [choice, ...others] = Array.isArray(choices) ? choices : [];
    if (!isObject(choice) || others.length > 0 || !isObject(choice.delta)) return undefined;
    const { delta } = choice;
    if (Object.values(delta).some((member) => typeof member === "object" && member !== null)) return undefined;
    const name = SAID.find((name) => typeof delta[name] === "string" && delta[name] !== "");
    return name === undefined ? undefined : { holder: delta, name };
  },
  // OpenAI hides the length of what is said behind a text of chance.
  unread: ["obfuscation"],
};

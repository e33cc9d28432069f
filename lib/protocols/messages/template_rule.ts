import { isObject, type JsonObject } from "../../json/mod.ts";
import type { TemplateRule, VariableMember } from "../frame_template.ts";

const TEXT_MEMBERS = ["text", "thinking", "partial_json"] as const;

/** Applies to deltas of text, thinking and input. */
export const messagesTemplateRule: TemplateRule = {
  variableMember(event: JsonObject): VariableMember | undefined {
    const { delta, ...others } = event;
    if (!isObject(delta) || hasObject(others) || hasObject(delta)) return undefined;
    const name = TEXT_MEMBERS.find((name) => typeof delta[name] === "string" && delta[name] !== "");
    return name === undefined ? undefined : { holder: delta, name };
  },
  unread: [],
};

function hasObject(members: JsonObject): boolean {
  return Object.values(members).some((member) => typeof member === "object" && member !== null);
}

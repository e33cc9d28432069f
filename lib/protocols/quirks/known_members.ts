/** Rewrites messages for servers that refuse members that they do not know. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt } from "../canonical/types.ts";
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { Model } from "../../catalog/model.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { asksForSomething } from "../extras.ts";
import { nonEmptyStringOf } from "../members.ts";
import { omit } from "./quirk.ts";

/** The messages that a server accepts. */
export interface KnownMembers {
  /** Members besides role and content, by role. Messages of other roles stay as they are. */
  members: ReadonlyMap<Json | undefined, readonly string[]>;
  /** Adds the reasoning of an earlier answer to its message. */
  withThought(message: JsonObject, thought: string): JsonObject;
}

const REASONING_MEMBERS = ["reasoning_content", "reasoning"];

/**
 * Returns a function that removes unknown members from a message, and writes its reasoning as the server has it. What
 * gets lost is added to `dropped`, such as reasoning if the model has none.
 */
export function keepKnownMembers(
  { members, withThought }: KnownMembers,
  { protocol }: Pick<Prompt, "protocol">,
  { dropped, row }: { dropped: UnsupportedParameters; row: Pick<Model, "reasoning"> },
): (message: JsonObject) => JsonObject {
  return (message) => {
    const known = members.get(message.role);
    if (known === undefined) return message;
    const thought = nonEmptyStringOf(message.reasoning_content) ?? nonEmptyStringOf(message.reasoning) ?? "";
    const unknown = Object.keys(message).filter((name) =>
      name !== "role" && name !== "content" && !known.includes(name)
    );
    for (const name of unknown) {
      if (!REASONING_MEMBERS.includes(name) && asksForSomething(message[name])) dropped.add(`messages.${name}`);
    }
    const others = omit(message, unknown);
    if (thought.trim() === "") return others;
    if (row.reasoning !== undefined) return withThought(others, thought);
    dropped.add(PARAMETER_NAMES[protocol].unsigned);
    return others;
  };
}

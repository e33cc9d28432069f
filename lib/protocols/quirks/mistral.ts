import type { JsonObject } from "../../json/mod.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import { mapMessages, omit, type Quirk, rename } from "./quirk.ts";

/** Mistral answers 422 ("Extra inputs are not permitted") to members that it does not know. */
export const mistral: Quirk = {
  dialect: {
    ...compatible.dialect,
    // Call ids have exactly nine letters and digits.
    callId: { legal: /[A-Za-z0-9]/, max: 9, exact: true },
  },
  body(body, _prompt, dropped) {
    const own = rename(compatibleBody(body, dropped), "seed", "random_seed");
    for (const name of UNKNOWN) {
      // Nothing is stored anyway, and null asks for nothing.
      if (body[name] !== undefined && body[name] !== null && body[name] !== false) dropped.add(name);
    }
    // Usage comes on the last chunk without being asked for, and asking for it is refused.
    const known = omit(own, [...UNKNOWN, "stream_options"]);
    const withoutNames = mapMessages(known, (message) => dropName(message, () => dropped.add("messages.name")));
    return withoutNames.tool_choice === "required" ? { ...withoutNames, tool_choice: "any" } : withoutNames;
  },
};

/** Members that OpenAI's clients often send. */
const UNKNOWN = [
  "user",
  "safety_identifier",
  "store",
  "verbosity",
  "service_tier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
] as const;

/** Only tool messages may have a name. */
function dropName(message: JsonObject, note: () => void): JsonObject {
  if (message.role === "tool" || message.name === undefined) return message;
  note();
  return omit(message, ["name"]);
}

/** The quirks of Mistral. */
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
    for (const name of UNKNOWN_MEMBERS) {
      // Null asks for nothing, and `store: false` is no loss, because nothing is stored.
      if (body[name] !== undefined && body[name] !== null && body[name] !== false) dropped.add(name);
    }
    // The last chunk always has the usage, and Mistral refuses requests that ask for it.
    const known = omit(own, [...UNKNOWN_MEMBERS, "stream_options"]);
    const renamed = mapMessages(known, (message) => dropName(message, () => dropped.add("messages.name")));
    return renamed.tool_choice === "required" ? { ...renamed, tool_choice: "any" } : renamed;
  },
};

/** Members that OpenAI's clients often send and Mistral does not know. */
const UNKNOWN_MEMBERS = [
  "user",
  "safety_identifier",
  "store",
  "verbosity",
  "service_tier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
] as const;

/** Removes the name of a message: only tool messages may have one. */
function dropName(message: JsonObject, reportDropped: () => void): JsonObject {
  if (message.role === "tool" || message.name === undefined) return message;
  reportDropped();
  return omit(message, ["name"]);
}

/** Mistral. Its content arrays with thinking are read everywhere. */
import { isObject, type JsonObject } from "../../json.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import { mapMessages, type Mend, omit, rename } from "./mend.ts";

/** Mistral checks requests strictly: members it does not know are refused with 422 ("Extra inputs are not permitted"). */
export const mistral: Mend = {
  dialect: {
    ...compatible.dialect,
    // Ids have exactly nine letters and digits.
    callId: { legal: /[A-Za-z0-9]/, max: 9, exact: true },
  },
  body(body, _prompt, dropped) {
    // Usage comes on the last chunk without being asked for.
    const own = rename(omit(compatibleBody(body), ["stream_options"]), "seed", "random_seed");
    if (own.user !== undefined) dropped.add("user");
    const named = mapMessages(omit(own, ["user"]), (message) => dropName(message, () => dropped.add("messages.name")));
    return named.tool_choice === "required" ? { ...named, tool_choice: "any" } : named;
  },
};

/** Only results of tools may have a name. */
function dropName(message: JsonObject, note: () => void): JsonObject {
  if (!isObject(message) || message.role === "tool" || message.name === undefined) return message;
  note();
  return omit(message, ["name"]);
}

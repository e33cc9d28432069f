/** The quirks of Mistral. */
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { listOf } from "../members.ts";
import { legalCallId } from "../translate/legal_names.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import { keepKnownMembers, type KnownMembers } from "./known_members.ts";
import { mapMessages, omit, type Quirk, rename } from "./quirk.ts";

/** Call ids have exactly nine letters and digits. */
const CALL_ID = { legal: /[A-Za-z0-9]/, max: 9, exact: true };

/** Mistral answers 422 ("Extra inputs are not permitted") to members that it does not know. */
export const mistral: Quirk = {
  dialect: { ...compatible.dialect, unsignedReasoning: true },
  changesAllMessages: true,
  body(body, prompt, dropped, row) {
    const own = rename(compatibleBody(body, dropped), "seed", "random_seed");
    for (const name of UNKNOWN_MEMBERS) {
      // Null asks for nothing, and `store: false` is no loss, because nothing is stored.
      if (body[name] !== undefined && body[name] !== null && body[name] !== false) dropped.add(name);
    }
    // The last chunk always has the usage, and Mistral refuses requests that ask for it.
    const known = omit(own, [...UNKNOWN_MEMBERS, "stream_options"]);
    const keepKnown = keepKnownMembers(MESSAGES, prompt, { dropped, row });
    const renamed = mapMessages(known, (message) => withLegalIds(keepKnown(message)));
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

const MESSAGES: KnownMembers = {
  members: new Map<Json | undefined, readonly string[]>([
    ["system", []],
    ["user", []],
    ["assistant", ["tool_calls", "prefix"]],
    ["tool", ["tool_call_id", "name"]],
  ]),
  /** Mistral's models write reasoning as a part before the text. */
  withThought(message, thought) {
    const { content } = message;
    const texts = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : listOf(content);
    const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }], closed: true };
    return { ...message, content: [thinking, ...texts] };
  },
};

const CALL_MEMBERS = ["id", "type", "function", "index"];

/** Makes the ids of calls and results legal: another model may have made the calls. */
function withLegalIds(message: JsonObject): JsonObject {
  const { tool_calls: calls, tool_call_id: id } = message;
  const legalId = typeof id === "string" ? legalCallId(id, CALL_ID) : id;
  const legalCalls = listOf(calls).map(withLegalId);
  const areLegal = legalId === id && legalCalls.every((call, index) => call === listOf(calls)[index]);
  if (areLegal) return message;
  return legalId === id ? { ...message, tool_calls: legalCalls } : { ...message, tool_call_id: legalId };
}

function withLegalId(call: Json): Json {
  if (!isObject(call)) return call;
  const known = omit(call, Object.keys(call).filter((name) => !CALL_MEMBERS.includes(name)));
  const { id } = known;
  const legalId = typeof id === "string" ? legalCallId(id, CALL_ID) : id;
  return legalId === id ? known : { ...known, id: legalId };
}

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

/** The members of a call that Mistral knows. */
const CALL_MEMBERS = ["id", "type", "function", "index"];

/** Makes the ids of calls and results legal, and removes unknown members of calls: another model may have made them. */
function withLegalIds(message: JsonObject): JsonObject {
  const calls = listOf(message.tool_calls);
  const legalCalls = calls.map((call) => isObject(call) ? withLegalId(withKnownMembers(call), "id") : call);
  const legal = withLegalId(message, "tool_call_id");
  return calls.every((call, index) => call === legalCalls[index]) ? legal : { ...legal, tool_calls: legalCalls };
}

function withKnownMembers(call: JsonObject): JsonObject {
  return omit(call, Object.keys(call).filter((name) => !CALL_MEMBERS.includes(name)));
}

function withLegalId(object: JsonObject, name: "id" | "tool_call_id"): JsonObject {
  const id = object[name];
  const legalId = typeof id === "string" ? legalCallId(id, CALL_ID) : id;
  return legalId === id ? object : { ...object, [name]: legalId };
}

/** Servers that follow OpenAI's older words: nearly everybody else. */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import { mapMessages, omit, type Quirk, rename } from "./quirk.ts";

/** What all OpenAI-compatible servers have in common. Other mends build on it. */
export const compatible: Quirk = {
  // Free-form tools exist nowhere else.
  dialect: { customTools: false },
  body: (body, _prompt, dropped) => compatibleBody(body, dropped),
};

/** Words that came after the servers were written, put back into the older ones. */
export function compatibleBody(body: JsonObject, dropped: UnsupportedParameters): JsonObject {
  // The newer word takes the place of the older one.
  const { safety_identifier: id, user } = body;
  if (typeof id === "string" && typeof user === "string" && id !== user) dropped.add("user");
  return mapMessages(rename(rename(body, "max_completion_tokens", "max_tokens"), "safety_identifier", "user"), reword);
}

const REFUSAL = ["refusal"];

function reword(message: JsonObject): JsonObject {
  const said = joinTexts(message.role === "developer" ? { ...message, role: "system" } : message);
  return typeof said.refusal === "string" ? sayRefusal(said, said.refusal) : omit(said, REFUSAL);
}

/** Nobody else knows a refusal apart from what was said; without it the message would be empty. */
function sayRefusal(message: JsonObject, refusal: string): JsonObject {
  const { content } = message;
  const others = omit(message, ["refusal"]);
  if (refusal === "") return others;
  if (Array.isArray(content)) return { ...others, content: [...content, { type: "text", text: refusal }] };
  return { ...others, content: typeof content === "string" && content !== "" ? `${content}\n${refusal}` : refusal };
}

/** Many templates take text only as a string, except from the user. Parts that say more than text stay. */
function joinTexts(message: JsonObject): JsonObject {
  const { role, content } = message;
  if (role === "user" || !Array.isArray(content)) return message;
  const texts = content.map((part) =>
    isObject(part) && part.type === "text" && typeof part.text === "string" && Object.keys(part).length === 2
      ? part.text
      : undefined
  );
  return texts.includes(undefined) ? message : { ...message, content: texts.join("\n") };
}

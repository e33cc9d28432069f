/** The quirks that all OpenAI-compatible servers share: they follow an older version of OpenAI's chat API. */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import { mapMessages, omit, type Quirk, rename } from "./quirk.ts";

/** The base of all other quirks: vendors spread `compatible.dialect` and call `compatibleBody()`. */
export const compatible: Quirk = {
  // Only OpenAI has free-form tools.
  dialect: { customTools: false },
  mayKnowOpenRouter: true,
  body: (body, _prompt, dropped) => compatibleBody(body, dropped),
};

/** Replaces the names of members and roles that these servers do not know by the older ones. */
export function compatibleBody(body: JsonObject, dropped: UnsupportedParameters): JsonObject {
  // The newer member replaces the older one, so another user id is lost.
  const { safety_identifier: id, user } = body;
  if (typeof id === "string" && typeof user === "string" && id !== user) dropped.add("user");
  return mapMessages(
    rename(rename(body, "max_completion_tokens", "max_tokens"), "safety_identifier", "user"),
    rewriteMessage,
  );
}

const REFUSAL = ["refusal"];

function rewriteMessage(message: JsonObject): JsonObject {
  const rewritten = joinTexts(message.role === "developer" ? { ...message, role: "system" } : message);
  return typeof rewritten.refusal === "string"
    ? moveRefusalIntoText(rewritten, rewritten.refusal)
    : omit(rewritten, REFUSAL);
}

/** Moves a refusal into the text: these servers ignore `refusal`, and the message would be empty. */
function moveRefusalIntoText(message: JsonObject, refusal: string): JsonObject {
  const { content } = message;
  const others = omit(message, ["refusal"]);
  if (refusal === "") return others;
  if (Array.isArray(content)) return { ...others, content: [...content, { type: "text", text: refusal }] };
  return { ...others, content: typeof content === "string" && content !== "" ? `${content}\n${refusal}` : refusal };
}

/** Joins text parts without other members: many chat templates accept only a string, except from the user. */
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

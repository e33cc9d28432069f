/** The reasoning of the echo model: a sentence about what it will do, with a signature. */
import { createHash } from "node:crypto";
import { PARAMETER_NAMES } from "../../protocols/canonical/parameter_names.ts";
import { fromBase64Url, toBase64Url } from "../../protocols/canonical/signature.ts";
import type { Message, Protocol, Reasoning, Signature } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/** Issuer of the embedded models' signatures. */
export const ISSUER = "sluice";
/** Maximum number of calls that the reasoning names. The others are only counted. */
const MAX_NAMED_CALLS = 3;

const SIGNATURE_ERRORS: Record<Protocol, string> = {
  messages: "Invalid `signature` in `thinking` block",
  chat: "Invalid `signature` in `reasoning_details`",
  responses: "Invalid `encrypted_content` in `reasoning` item",
  gemini: "Invalid `thoughtSignature`",
};

/** Returns whether the client wants the model to reason. */
export function wantsReasoning(reasoning: Reasoning | undefined): boolean {
  if (reasoning === undefined || reasoning.mode === "off" || reasoning.effort === "none") return false;
  return reasoning.mode !== undefined || reasoning.effort !== undefined;
}

/** Returns the reasoning of an answer with these tool calls. */
export function reasoningText(calls: readonly { name: string }[]): string {
  if (calls.length === 0) return "I will repeat the end of the conversation, or fit it to the requested format.";
  const names = calls.slice(0, MAX_NAMED_CALLS).map(({ name }) => name).join(", ");
  const more = calls.length - MAX_NAMED_CALLS;
  return `The user wants tools. I will call ${names}${more > 0 ? ` and ${more} more` : ""}.`;
}

/** Signs reasoning. The signature contains the text of the reasoning, so that clients can get it without the text. */
export function signReasoning(thought: string): Signature {
  return { issuer: ISSUER, value: `${toBase64Url(thought)}.${digest(thought)}` };
}

/**
 * Checks the signatures of the embedded models in a conversation. Those of other issuers are ignored.
 * @throws {GatewayError} `invalid` if a signature is forged or its reasoning was changed
 */
export function checkThoughts({ messages, protocol }: { messages: readonly Message[]; protocol: Protocol }): void {
  for (const { blocks } of messages) {
    for (const block of blocks) {
      if (block.type !== "reasoning" || block.signature?.issuer !== ISSUER) continue;
      if (isGenuine(block.signature.value, block.text)) continue;
      throw new GatewayError("invalid", SIGNATURE_ERRORS[protocol], {
        param: PARAMETER_NAMES[protocol].messages,
      });
    }
  }
}

/** Returns whether a signature belongs to a text. Reasoning that was omitted comes back with an empty text. */
function isGenuine(value: string, text: string): boolean {
  const thought = read(value);
  return thought !== undefined && signReasoning(thought).value === value && (text === "" || text === thought);
}

function read(value: string): string | undefined {
  try {
    return fromBase64Url(value.split(".")[0] ?? "");
  } catch {
    return undefined;
  }
}

function digest(thought: string): string {
  return createHash("sha256").update(`sluice/echo ${thought}`).digest("base64url").slice(0, 32);
}

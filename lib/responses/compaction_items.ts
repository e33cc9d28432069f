/** Creates and opens the gateway's compaction items. An item contains a summary, encrypted for one API key. */
import { Buffer } from "node:buffer";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { utf8Bytes } from "../text.ts";
import { seal, unseal } from "../recall/seal.ts";

const PURPOSE = "sluice compaction 1";

/** Prefix of the gateway's `encrypted_content`. The vendors' own values do not have it. */
const PREFIX = "sluicec1.";

/** The prompt for the summary, which replaces the `compaction_trigger` item. */
export const COMPACTION_PROMPT =
  "The conversation above is about to be replaced by a summary, so that it fits the context window. Write that summary " +
  "for the assistant that goes on with the work and will see nothing else of it. Include: what the user wants, with all " +
  "constraints and preferences, quoted where the wording matters; what was done so far and with which results; decisions " +
  "and the reasons for them; names of files, functions, commands, identifiers, addresses and values that are still " +
  "needed, exactly as they are; errors that came up and how they were solved; what is in progress, and the next steps. " +
  "Leave out what no longer matters. Do not call tools, do not ask questions and do not answer the user: write the " +
  "summary only.";

/** Start of the message that contains a summary. */
export const SUMMARY_START = "Summary of the conversation so far, which it replaces:\n\n";

/** Returns a compaction item with a summary, encrypted for an API key. */
export async function sealCompaction(
  summary: string,
  { id, secret }: { id: string; secret: string },
): Promise<JsonObject> {
  const bytes = utf8Bytes(summary);
  const sealed = await seal(secret, { purpose: PURPOSE, place: "", bytes });
  return { type: "compaction", id, encrypted_content: PREFIX + Buffer.from(sealed).toString("base64url") };
}

/** Returns whether an item is a compaction item of the gateway. */
export function isSealed(item: Json | undefined): item is JsonObject {
  return isObject(item) && item.type === "compaction" && typeof item.encrypted_content === "string" &&
    item.encrypted_content.startsWith(PREFIX);
}

/**
 * Decrypts a compaction item.
 * @returns the message that replaces it in the model's input; undefined for a modified item, or an item of another API
 * key or gateway
 */
export async function openCompaction(
  { encrypted_content }: JsonObject,
  secret: string,
): Promise<JsonObject | undefined> {
  const decrypted = await unseal(secret, { purpose: PURPOSE, place: "", sealed: bytesOf(String(encrypted_content)) });
  if (decrypted === undefined) return undefined;
  const text = SUMMARY_START + new TextDecoder().decode(decrypted);
  return { type: "message", role: "user", content: [{ type: "input_text", text }] };
}

function bytesOf(encrypted: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(encrypted.slice(PREFIX.length), "base64url"));
}

/**
 * Writes reasoning signatures as opaque strings for clients, and reads them back. If the issuer is not the protocol's
 * own vendor, the string is an envelope that names the issuer, so that the signature returns to that issuer only.
 */
import { Buffer } from "node:buffer";
import { isObject, type JsonObject, parsePlain, shapes } from "../../json/mod.ts";
import type { ContentBlock, ContentBlockOf, Signature } from "./types.ts";

const ENVELOPE_PREFIX = shapes.SEAL_PREFIX;

/**
 * Writes a signature as one string.
 * @param native the issuer whose values have no envelope in the protocol, such as `anthropic` for messages
 */
export function writeSignature(signature: Signature, native: string): string {
  // A value in an envelope of another gateway further upstream gets a second envelope.
  if (signature.issuer === native && !signature.value.startsWith(ENVELOPE_PREFIX)) return signature.value;
  const { issuer, value, id } = signature;
  return ENVELOPE_PREFIX + toBase64Url(JSON.stringify(id === undefined ? { issuer, value } : { issuer, value, id }));
}

/** Reads a string of `writeSignature`. A string without a valid envelope belongs to the native issuer. */
export function readSignature(text: string, native: string): Signature {
  return readEnvelope(text) ?? { issuer: native, value: text };
}

/** Reads a signature in an envelope; undefined for any other string. */
export function readEnvelope(text: string): Signature | undefined {
  if (!text.startsWith(ENVELOPE_PREFIX)) return undefined;
  return signatureIn(parseEnvelope(text.slice(ENVELOPE_PREFIX.length)));
}

/** Reads a signature from its JSON in an envelope; undefined for any other value. */
export function signatureIn(json: unknown): Signature | undefined {
  if (!isObject(json)) return undefined;
  const { issuer, value, id } = json;
  if (typeof issuer !== "string" || typeof value !== "string") return undefined;
  return typeof id === "string" ? { issuer, value, id } : { issuer, value };
}

/**
 * Id of the signature that holds Anthropic's `redacted_thinking`. Clients of other protocols return a signature with
 * its id, but not the type of its block. Signatures of Anthropic without this id belong to a thinking text, even if the
 * text was omitted.
 */
const REDACTED_ID = "redacted";

/** Returns the signature of `redacted_thinking`. */
export function redactedSignature(issuer: string, value: string): Signature {
  return { issuer, value, id: REDACTED_ID };
}

/** Reads the data of `redacted_thinking`. In an envelope there may be the signature of another vendor, with its own id. */
export function readRedacted(data: string): ContentBlockOf<"reasoning"> {
  const signature = readSignature(data, "anthropic");
  return signatureBlock(signature.issuer === "anthropic" ? { ...signature, id: REDACTED_ID } : signature);
}

/** True for the signature of `redacted_thinking`. */
export function isRedacted(signature: Signature | undefined): boolean {
  return signature?.id === REDACTED_ID;
}

const CALL_ID_PREFIX = "call:";

/**
 * Returns the id for the signature of a tool call. Google signs calls, but the canonical form signs only reasoning:
 * such a signature belongs to a hidden reasoning block before the call.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export function callSignatureId(callId: string): string {
  return CALL_ID_PREFIX + callId;
}

/** Returns the call id in the id of a signature; undefined if the signature is not that of a call. */
export function signedCallId(id: string | undefined): string | undefined {
  return id?.startsWith(CALL_ID_PREFIX) === true ? id.slice(CALL_ID_PREFIX.length) : undefined;
}

/** Returns a block for a signature whose text is unknown, or belongs to another block. */
export function signatureBlock(signature: Signature): ContentBlockOf<"reasoning"> {
  return { type: "reasoning", text: "", hidden: true, signature };
}

/** Returns an issuer's signatures of calls, by call id. */
export function callSignatures(blocks: readonly ContentBlock[], issuer: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const block of blocks) {
    const signature = block.type === "reasoning" ? block.signature : undefined;
    const callId = signedCallId(signature?.id);
    if (signature?.issuer === issuer && callId !== undefined) values.set(callId, signature.value);
  }
  return values;
}

/** The issuer that signs calls. */
export const GOOGLE_ISSUER = "google";

/** Returns the signature beside a call in chat, where Google's OpenAI-compatible endpoint has it. */
export function chatCallSignature({ extra_content: extra }: JsonObject): string | undefined {
  const value = isObject(extra) && isObject(extra.google) ? extra.google.thought_signature : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Adds the signature of a call to its entry in chat; returns the entry if there is none. */
export function withCallSignature(entry: JsonObject, signature: string | undefined): JsonObject {
  return signature === undefined ? entry : { ...entry, extra_content: { google: { thought_signature: signature } } };
}

function parseEnvelope(encoded: string): unknown {
  try {
    return parsePlain(fromBase64Url(encoded));
  } catch {
    return undefined;
  }
}

/** Encodes UTF-8 text as unpadded base64url. */
export function toBase64Url(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** Decodes a string of `toBase64Url`. @throws {Error} for anything else than base64url of UTF-8 */
export function fromBase64Url(encoded: string): string {
  // `Buffer` skips other characters.
  if (!/^[A-Za-z0-9_-]*$/.test(encoded)) throw new SyntaxError("Expected base64url");
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(encoded, "base64url"));
}

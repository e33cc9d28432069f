/**
 * Signatures travel through clients as opaque strings. A signature of another issuer than the protocol's own vendor
 * travels in an envelope that names the issuer, so that it returns to that issuer only.
 */
import { isObject, parsePlain, shapes } from "../../json/mod.ts";
import type { ContentBlock, Signature } from "./types.ts";

const PREFIX = shapes.SEAL_PREFIX;

/**
 * Writes a signature as one string.
 * @param native the issuer whose values the protocol carries without an envelope, such as `anthropic` for messages
 */
export function writeSignature(signature: Signature, native: string): string {
  // A value in an envelope of another gateway further upstream gets a second envelope.
  if (signature.issuer === native && !signature.value.startsWith(PREFIX)) return signature.value;
  const { issuer, value, id } = signature;
  return PREFIX + toBase64Url(JSON.stringify(id === undefined ? { issuer, value } : { issuer, value, id }));
}

/** Reads a string of `writeSignature`. A string without an envelope belongs to the native issuer. */
export function readSignature(text: string, native: string): Signature {
  if (!text.startsWith(PREFIX)) return { issuer: native, value: text };
  const inner = parse(text.slice(PREFIX.length));
  if (!isObject(inner) || typeof inner.issuer !== "string" || typeof inner.value !== "string") {
    return { issuer: native, value: text };
  }
  return typeof inner.id === "string"
    ? { issuer: inner.issuer, value: inner.value, id: inner.id }
    : { issuer: inner.issuer, value: inner.value };
}

/**
 * Id of a signature of Anthropic's `redacted_thinking`. Clients of other protocols keep no block types, but they keep the
 * signature with its id, which identifies the data when it comes back. Its other signatures belong to text, even if the
 * text was omitted.
 */
export const REDACTED_ID = "redacted";

const CALL = "call:";

/**
 * Id of a signature of a tool call. Google signs calls; the canonical form signs only reasoning, so such a signature is
 * that of a hidden reasoning block before the call. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export function callSignatureId(callId: string): string {
  return CALL + callId;
}

/** Returns the call id of a signature; `undefined` for signatures of anything else. */
export function signedCallId(id: string | undefined): string | undefined {
  return id?.startsWith(CALL) === true ? id.slice(CALL.length) : undefined;
}

/** Returns the signatures of calls that an issuer made, by call id. */
export function callSignatures(blocks: readonly ContentBlock[], issuer: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const block of blocks) {
    const signature = block.type === "reasoning" ? block.signature : undefined;
    const callId = signedCallId(signature?.id);
    if (signature?.issuer === issuer && callId !== undefined) values.set(callId, signature.value);
  }
  return values;
}

function parse(encoded: string): unknown {
  try {
    return parsePlain(fromBase64Url(encoded));
  } catch {
    return undefined;
  }
}

/** Encodes UTF-8 text as unpadded base64url. */
export function toBase64Url(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * Decodes a string of `toBase64Url`.
 * @throws {Error} for anything else than base64url of UTF-8
 */
export function fromBase64Url(encoded: string): string {
  const binary = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
    Uint8Array.from(binary, (c) => c.charCodeAt(0)),
  );
}

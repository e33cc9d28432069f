/**
 * Signatures travel through clients as opaque strings. A signature whose issuer is not the protocol's own vendor is put
 * into an envelope that names the issuer, so that it finds its way back to it and to nobody else.
 */
import { isObject, parsePlain } from "../../json/mod.ts";
import type { Signature } from "./types.ts";

const PREFIX = "sluice1.";

/**
 * Writes a signature as one string.
 * @param native the issuer whose bare values the protocol carries, such as `anthropic` for messages
 */
export function writeSignature(signature: Signature, native: string): string {
  // A value in an envelope of another gateway's, further up, gets one more: it is not ours to open.
  if (signature.issuer === native && !signature.value.startsWith(PREFIX)) return signature.value;
  const { issuer, value, id } = signature;
  return PREFIX + toBase64Url(JSON.stringify(id === undefined ? { issuer, value } : { issuer, value, id }));
}

/** Reads what `writeSignature` wrote. Anything without our envelope is taken for the native issuer's. */
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

function parse(encoded: string): unknown {
  try {
    return parsePlain(fromBase64Url(encoded));
  } catch {
    return undefined;
  }
}

/** UTF-8 text as unpadded base64url. */
export function toBase64Url(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * The text that `toBase64Url` encoded.
 * @throws {Error} on anything that is not base64url of UTF-8
 */
export function fromBase64Url(encoded: string): string {
  const binary = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
    Uint8Array.from(binary, (c) => c.charCodeAt(0)),
  );
}

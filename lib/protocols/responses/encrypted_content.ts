/**
 * Writes and reads reasoning signatures as `encrypted_content`. OpenAI's values have no envelope; all others have one
 * that names the issuer.
 */
import { readSignature, writeSignature } from "../canonical/signature.ts";
import type { Signature } from "../canonical/types.ts";

/** The entry of `include` that asks for encrypted reasoning, which later requests can send back. */
export const ENCRYPTED = "reasoning.encrypted_content";

/** The issuer of values without an envelope. */
export const NATIVE_ISSUER = "openai";

/** Suffix of the issuer in an envelope if the text was withheld. An item has no other place for this fact. */
const HIDDEN_SUFFIX = "#hidden";

/**
 * Writes a signature. An OpenAI value belongs to the id of its item, which the gateway replaces, so a value with an id
 * gets an envelope that keeps the id.
 * @param hidden whether the issuer withheld the block's text
 */
export function writeEncrypted(signature: Signature, hidden: boolean): string {
  if (signature.issuer === NATIVE_ISSUER) {
    return writeSignature(signature, signature.id === undefined ? NATIVE_ISSUER : "");
  }
  return writeSignature(hidden ? { ...signature, issuer: signature.issuer + HIDDEN_SUFFIX } : signature, NATIVE_ISSUER);
}

/**
 * Reads a value of `writeEncrypted` or OpenAI.
 * @param id the id of the item, to which an OpenAI value without an envelope belongs
 */
export function readEncrypted(encrypted: string, id: string | undefined): { signature: Signature; hidden: boolean } {
  const signature = readSignature(encrypted, NATIVE_ISSUER);
  const hasEnvelope = signature.value !== encrypted;
  if (!hasEnvelope) {
    return { signature: id === undefined ? signature : { ...signature, id }, hidden: false };
  }
  const hidden = signature.issuer.endsWith(HIDDEN_SUFFIX);
  return {
    signature: hidden ? { ...signature, issuer: signature.issuer.slice(0, -HIDDEN_SUFFIX.length) } : signature,
    hidden,
  };
}

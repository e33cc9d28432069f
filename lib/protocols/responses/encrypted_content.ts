/**
 * Reasoning signatures in `encrypted_content`. OpenAI's own values have no envelope; all others have one that names the
 * issuer.
 */
import { readSignature, writeSignature } from "../canonical/signature.ts";
import type { Signature } from "../canonical/types.ts";

/** Name in `include` that asks for them: any later request can send reasoning of this form back. */
export const ENCRYPTED = "reasoning.encrypted_content";

/** The issuer of values without an envelope. */
export const NATIVE_ISSUER = "openai";

/** Suffix of the issuer in the envelope of a hidden block: items have no other place for it. */
const HIDDEN = "#hidden";

/**
 * Writes a signature. OpenAI's values belong to the id of their own item, which the gateway replaces, so those with an
 * id get an envelope that keeps it.
 * @param hidden whether the issuer withheld the block's text
 */
export function writeEncrypted(signature: Signature, hidden: boolean): string {
  if (signature.issuer === NATIVE_ISSUER) {
    return writeSignature(signature, signature.id === undefined ? NATIVE_ISSUER : "");
  }
  return writeSignature(hidden ? { ...signature, issuer: signature.issuer + HIDDEN } : signature, NATIVE_ISSUER);
}

/**
 * Reads a value of `writeEncrypted` or OpenAI.
 * @param id id of the item, to which OpenAI's bare values belong
 */
export function readEncrypted(encrypted: string, id: string | undefined): { signature: Signature; hidden: boolean } {
  const signature = readSignature(encrypted, NATIVE_ISSUER);
  if (signature.value === encrypted) {
    return { signature: id === undefined ? signature : { ...signature, id }, hidden: false };
  }
  const hidden = signature.issuer.endsWith(HIDDEN);
  return {
    signature: hidden ? { ...signature, issuer: signature.issuer.slice(0, -HIDDEN.length) } : signature,
    hidden,
  };
}

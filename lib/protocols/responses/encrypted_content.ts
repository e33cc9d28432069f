/**
 * `encrypted_content`: a reasoning signature as this protocol's clients keep it. OpenAI's own values are bare; everything
 * else is in an envelope that names the issuer.
 */
import { readSignature, writeSignature } from "../canonical/signature.ts";
import type { Signature } from "../canonical/types.ts";

/** The issuer whose values the protocol carries bare. */
export const NATIVE_ISSUER = "openai";

/** Ends the issuer's name in the envelope of a hidden block: items have no other place to say it. */
const HIDDEN = "#hidden";

/**
 * Writes a signature. OpenAI's values belong to the id of their own item, which is not the one written here, so those
 * that have an id go into an envelope that keeps it.
 * @param hidden whether the block's text was withheld by the issuer, not only by this answer
 */
export function writeEncrypted(signature: Signature, hidden: boolean): string {
  if (signature.issuer === NATIVE_ISSUER) {
    return writeSignature(signature, signature.id === undefined ? NATIVE_ISSUER : "");
  }
  return writeSignature(hidden ? { ...signature, issuer: signature.issuer + HIDDEN } : signature, NATIVE_ISSUER);
}

/**
 * Reads what `writeEncrypted` or OpenAI wrote.
 * @param id id of the item it came in, which OpenAI's bare values belong to
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

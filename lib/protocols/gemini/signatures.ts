/**
 * A `thoughtSignature` stands on a part: text, thought or function call. In the canonical form only reasoning has a
 * signature, so that of another part is a hidden reasoning block of its own, whose signature id tells what it belongs to.
 */

/** Id of a signature of the text that follows it. */
export const TEXT = "text";

/** Id of a signature of the text that goes before it: it came when the text was already under way. */
export const TEXT_BEFORE = "text:end";

const CALL = "call:";

/** Id of a signature of a function call. */
export function callSignatureId(callId: string): string {
  return CALL + callId;
}

/** Id of the call that a signature belongs to; `undefined` for signatures of other things. */
export function signedCallId(id: string | undefined): string | undefined {
  return id?.startsWith(CALL) === true ? id.slice(CALL.length) : undefined;
}

/**
 * Stands for the signature of a call that has none, because another model made it or because the client kept none: the
 * models that check signatures refuse the whole conversation otherwise.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export const UNSIGNED = "skip_thought_signature_validator";

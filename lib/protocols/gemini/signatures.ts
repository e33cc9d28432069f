/**
 * Signatures of Gemini's parts. A `thoughtSignature` belongs to a text, thought or function call. The canonical form
 * signs only reasoning, so a signature of another part becomes a hidden reasoning block, whose signature id names the
 * part.
 */

/** Id of a signature of the following text. */
export const TEXT = "text";

/** Id of a signature of the preceding text, which was already open. */
export const TEXT_BEFORE = "text:end";

const CALL = "call:";

/** Id of a signature of a function call. */
export function callSignatureId(callId: string): string {
  return CALL + callId;
}

/** Returns the call id of a signature; `undefined` for signatures of other parts. */
export function signedCallId(id: string | undefined): string | undefined {
  return id?.startsWith(CALL) === true ? id.slice(CALL.length) : undefined;
}

/**
 * Placeholder for a missing signature of a call (made by another model, or lost by the client): models that check
 * signatures would refuse the conversation. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export const UNSIGNED = "skip_thought_signature_validator";

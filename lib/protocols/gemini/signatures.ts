/**
 * Signatures of Gemini's parts. A `thoughtSignature` belongs to a text, thought or function call. The canonical form
 * signs only reasoning, so a signature of another part becomes a hidden reasoning block, whose signature id names the
 * part.
 */

/** Id of a signature of the following text. */
export const TEXT = "text";

/** Id of a signature of the preceding text, which was already open. */
export const TEXT_BEFORE = "text:end";

/**
 * Placeholder for a missing signature of a call (made by another model, or lost by the client): models that check
 * signatures would refuse the conversation. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export const UNSIGNED = "skip_thought_signature_validator";

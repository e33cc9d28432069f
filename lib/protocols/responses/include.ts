/** Names of entries of `include` in responses requests. */

/** The entry of `include` that asks for the log probabilities of the answer's tokens. */
export const LOGPROBS = "message.output_text.logprobs";

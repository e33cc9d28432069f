/** Every parameter that the row of a text model may list and that more than one protocol has. */
export const EVERY_PARAMETER: readonly string[] = [
  ...["temperature", "top_p", "top_k", "min_p", "top_a", "frequency_penalty", "presence_penalty", "repetition_penalty"],
  ...["max_tokens", "logit_bias", "logprobs", "top_logprobs", "seed", "stop", "verbosity", "reasoning"],
  ...["tools", "tool_choice", "parallel_tool_calls", "response_format", "structured_outputs"],
];

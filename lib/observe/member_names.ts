/** Member names that logs and labels may contain. Other names are free text of a client. */

/** Member names of all protocols. */
const NAMES: ReadonlySet<string> = new Set(
  `annotations audio background betas cache_control citations container content context_management diagnostics
  conversation defer_loading document effort encrypted_content fallbacks file file_data file_id filename
  frequency_penalty function_call functions image image_url include include_reasoning inference_geo input
  input_fidelity instructions logit_bias logprobs max_completion_tokens max_output_tokens max_tokens max_tool_calls
  mcp_servers messages messages.name metadata min_p modalities model models moderation n name namespace
  output_compression output_config output_config.effort output_format parallel_tool_calls partial_images plugins
  prediction prefill presence_penalty previous_response_id prompt prompt_cache_key prompt_cache_options
  prompt_cache_retention provider quality reasoning reasoning.context reasoning.effort reasoning.enabled
  reasoning.exclude reasoning.generate_summary reasoning.max_tokens reasoning.mode reasoning.summary reasoning_content
  reasoning_details reasoning_effort redacted_thinking repetition_penalty response_format route safeguards
  safety_identifier seed service_tier session_id signature size speed stop stop_sequences store stream stream_options
  strict style system temperature text text.format text.verbosity thinking thinking.budget_tokens thinking.display
  thinking.type title tool_choice tool_choice.disable_parallel_tool_use tools top_a top_k top_logprobs top_p trace
  transforms truncation user user_id user_location verbosity web_search_options`.split(/\s+/),
);

/** Returns a known name; for others its known prefix, such as `tools.other`, else `other`. */
export function memberName(name: string): string {
  if (NAMES.has(name)) return name;
  const [first = ""] = name.split(".", 1);
  return first !== name && NAMES.has(first) ? `${first}.other` : "other";
}

/** The names of several members, without duplicates. */
export function memberNames(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : [...new Set(names.map(memberName))];
}

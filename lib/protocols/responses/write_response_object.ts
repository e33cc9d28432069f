/** The response object: everything but the output repeats the request. */
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import type { Echo } from "../codec.ts";
import { objectOf, objectsOf } from "../members.ts";
import { writeUsage } from "./write_responses_usage.ts";

/** What of a response object changes while it is made. */
export interface ResponseProgress {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly JsonObject[];
  /** Why the status is `incomplete`. */
  incomplete?: "max_output_tokens" | "content_filter";
  /** Why the status is `failed`. */
  error?: { code: string; message: string };
  usage?: TokenUsage;
}

/**
 * A function that writes the response object as it stands. It has every member that official clients and the Open
 * Responses suite ask for, in each of its states.
 */
export function responseWriter(echo: Echo): (progress: ResponseProgress) => JsonObject {
  const { request } = echo;
  const text = objectOf(request.text) ?? {};
  const reasoning = objectOf(request.reasoning) ?? {};
  return ({ status, output, incomplete, error, usage }) => ({
    id: `resp_${echo.requestId}`,
    object: "response",
    created_at: echo.createdAt,
    completed_at: status === "completed" ? echo.completedAt?.() ?? echo.createdAt : null,
    status,
    background: false,
    error: error === undefined ? null : { ...error },
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    // Clients' types allow only a string here, although items may be sent.
    instructions: typeof request.instructions === "string" ? request.instructions : null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    model: echo.model,
    output: [...output],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? reasoning.generate_summary ?? null },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: request.service_tier ?? "default",
    // Nothing is stored either way: the member only repeats what was asked for, and asking for nothing means true.
    store: request.store ?? true,
    temperature: request.temperature ?? 1,
    top_p: request.top_p ?? 1,
    top_logprobs: request.top_logprobs ?? 0,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    text: { ...text, format: text.format ?? { type: "text" }, verbosity: text.verbosity ?? "medium" },
    tool_choice: request.tool_choice ?? "auto",
    tools: objectsOf(request.tools).map(writeTool),
    truncation: request.truncation ?? "disabled",
    usage: usage === undefined ? null : writeUsage(usage),
    user: request.user ?? null,
    metadata: request.metadata ?? {},
  });
}

/** A tool of the request; strict readers want every member of a function, absent or not. */
function writeTool(tool: JsonObject): Json {
  if (tool.type !== "function") return tool;
  return {
    ...tool,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? null,
  };
}

/** Writes the response object. All members besides the output and its outcome repeat the request. */
import type { TokenUsage } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import type { ResponseContext } from "../codec.ts";
import { objectOf, objectsOf } from "../members.ts";
import { writeUsage } from "./responses_usage.ts";

/** The members of a response object that change while it is written. */
export interface ResponseProgress {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly JsonObject[];
  /** The reason for the status `incomplete`. */
  incomplete?: "max_output_tokens" | "content_filter";
  /** The reason for the status `failed`. */
  error?: { code: string; message: string };
  usage?: TokenUsage;
}

/**
 * Returns a function that writes the response object. In each state the object has every member that official clients
 * and the Open Responses suite require.
 */
export function responseWriter(context: ResponseContext): (progress: ResponseProgress) => JsonObject {
  const { request } = context;
  const text = objectOf(request.text) ?? {};
  const reasoning = objectOf(request.reasoning) ?? {};
  return ({ status, output, incomplete, error, usage }) => ({
    id: responseId(context),
    object: "response",
    created_at: context.createdAt,
    completed_at: status === "completed" ? context.completedAt?.() ?? context.createdAt : null,
    status,
    background: false,
    error: error === undefined ? null : { ...error },
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    // The types of clients allow only a string here, although a request may have items.
    instructions: typeof request.instructions === "string" ? request.instructions : null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    model: context.model,
    output: [...output],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: context.keeper?.previousId ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? reasoning.generate_summary ?? null },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: usage === undefined ? request.service_tier ?? "default" : servedTier(usage),
    store: context.keeper?.isStored === true,
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

const TIERS: ReadonlySet<string> = new Set(["flex", "scale", "priority"]);

/** Returns the tier that the upstream reports. A requested tier that it does not report may not have served. */
function servedTier({ tiers = [] }: TokenUsage): string {
  return tiers.find((name) => TIERS.has(name)) ?? "default";
}

/** Returns the id of the response to a request. */
export function responseId({ requestId }: Pick<ResponseContext, "requestId">): string {
  return `resp_${requestId}`;
}

/** Writes a tool of the request. Strict clients require every member of a function. */
function writeTool(tool: JsonObject): Json {
  if (tool.type !== "function") return tool;
  return {
    ...tool,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? null,
  };
}

/**
 * The facts of a request for the log and the metrics, and its log line. They never contain a body, a key, or text of a
 * prompt or an answer.
 */
import type { Entry } from "../store/ledger.ts";
import type { Log, LogLevel } from "../log_events.ts";
import { formatUsd } from "../billing/money.ts";

/** Endpoints as named in metrics. Other routes are `other`. */
export type ObservedEndpoint =
  | Entry["endpoint"]
  | "count_tokens"
  | "models"
  | "openapi"
  | "usage"
  | "health"
  | "metrics"
  | "admin"
  | "other";

/** Which requests get a log line: all, only those with an error, or none. */
export type Logged = "all" | "errors" | "none";

/** Log options of a request. */
export interface ObserveOptions {
  log: Log;
  logged: Logged;
  /** True if successful requests for health and metrics get a log line, too. */
  probes: boolean;
}

/** The facts of a request. Each step of the request adds some. */
export interface RequestRecord {
  readonly id: string;
  /** A known method, or `other`. */
  readonly method: string;
  /** Time of arrival by the monotonic clock, in milliseconds. */
  readonly start: number;
  /**
   * Pattern of the route, such as `/v1/models/[provider]`, never the path itself. Gemini's routes end with the method,
   * such as `:countTokens`. Empty for unknown paths.
   */
  route: string;
  keyId?: string;
  keyName?: string;
  group?: string;
  /** Client address, if the configuration enables it in the log. */
  address?: string;
  /** Public id of the requested model; `other` if it is not in the catalog. */
  requestedModel?: string;
  upstreamProtocol?: string;
  /** Kind of the error; absent: there was none. */
  kind?: string;
  /** Code of the error; absent: it has none. */
  code?: string;
  /** The parameter named by the error, as in `memberName`. */
  param?: string;
  /** Bytes of the request body. */
  bytesIn: number;
  /** Bytes of the response body that were sent. */
  bytesOut: number;
  /** True if the response is an event stream. */
  streamed: boolean;
  /** Status of the response; 0 until there is one. */
  status: number;
  /** Ledger entry; absent while the request runs, and for requests that are not billed. */
  entry?: Entry;
  /** Trace context, for the observer. */
  trace?: unknown;
  /** Number of events, such as the end of the stream, that must still come before the log line is written. */
  waits: number;
  readonly observeOptions: ObserveOptions;
}

/** Returns the endpoint of a request by its route. */
export function endpointOf({ route, method }: Pick<RequestRecord, "route" | "method">): ObservedEndpoint {
  const known = ENDPOINTS[route];
  if (known !== undefined) return known;
  if (route.startsWith("/admin/")) return "admin";
  if (!/^(?:\/v1|\/anthropic\/v1|\/v1beta)\/models(?:\/|$)/.test(route)) return "other";
  if (method !== "POST") return "models";
  return route.endsWith(":countTokens") ? "count_tokens" : "gemini";
}

/** Returns whether a request is one of monitoring: for health or metrics. */
export function isProbe(record: Pick<RequestRecord, "route" | "method">): boolean {
  const endpoint = endpointOf(record);
  return endpoint === "health" || endpoint === "metrics";
}

const ENDPOINTS: Readonly<Record<string, ObservedEndpoint>> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
  "/v1/responses/compact": "responses",
  "/anthropic/v1/messages": "messages",
  "/v1/images/generations": "images.generations",
  "/v1/images/edits": "images.edits",
  "/v1/embeddings": "embeddings",
  "/v1/rerank": "rerank",
  "/anthropic/v1/messages/count_tokens": "count_tokens",
  "/v1/responses/input_tokens": "count_tokens",
  "/openapi.json": "openapi",
  "/v1/usage": "usage",
  "/healthz": "health",
  "/readyz": "health",
  "/anthropic/api/hello": "health",
  "/metrics": "metrics",
};

/** Names of members of requests in all protocols. Only these appear in the log and in metrics. */
const MEMBER_NAMES: ReadonlySet<string> = new Set(
  `annotations audio background best_of betas cache_control citations container content context_management conversation
  defer_loading diagnostics document effort encrypted_content extra_body fallbacks file file_data file_id filename
  frequency_penalty function_call functions image image_url include include_reasoning inference_geo input
  input_fidelity instructions logit_bias logprobs max_completion_tokens max_new_tokens max_output_tokens max_tokens
  max_tool_calls mcp_servers messages messages.name metadata min_p modalities model models moderation n n_predict name
  namespace num_predict output_compression output_config output_config.effort output_format parallel_tool_calls
  partial_images plugins prediction prefill presence_penalty previous_response_id prompt prompt_cache_key
  prompt_cache_options prompt_cache_retention provider quality reasoning reasoning.context reasoning.effort
  reasoning.enabled reasoning.exclude reasoning.generate_summary reasoning.max_tokens reasoning.mode reasoning.summary
  reasoning_content reasoning_details reasoning_effort redacted_thinking repetition_penalty response_format route
  safeguards safety_identifier seed service_tier session_id signature size speed stop stop_sequences store stream
  stream_options strict style system temperature text text.format text.verbosity thinking thinking.budget_tokens
  thinking.display thinking.type title tool_choice tool_choice.disable_parallel_tool_use tools top_a top_k top_logprobs
  top_p trace transforms truncation usage user user_id user_location verbosity web_search_options
  cachedContent contents contents.parts.thought contents.parts.thoughtSignature continuationToken displayName
  generationConfig generationConfig.candidateCount generationConfig.frequencyPenalty generationConfig.logprobs
  generationConfig.maxOutputTokens generationConfig.presencePenalty generationConfig.responseLogprobs
  generationConfig.responseSchema generationConfig.seed generationConfig.stopSequences generationConfig.temperature
  generationConfig.thinkingConfig generationConfig.thinkingConfig.thinkingBudget
  generationConfig.thinkingConfig.thinkingLevel generationConfig.topK generationConfig.topP labels safetySettings
  serviceTier systemInstruction toolConfig`.split(/\s+/),
);

/**
 * Returns a known name as it is. Other names become `other`, after their first part if that is known: `tools.other`.
 */
export function memberName(name: string): string {
  if (MEMBER_NAMES.has(name)) return name;
  const [first = ""] = name.split(".", 1);
  return first !== name && MEMBER_NAMES.has(first) ? `${first}.other` : "other";
}

/** Returns several names as `memberName` does, without duplicates. */
export function memberNames(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : [...new Set(names.map(memberName))];
}

/** The log line of a request. Unknown facts are absent. */
export interface RequestLogLine {
  level: LogLevel;
  event: "request";
  [fact: string]: string | number | boolean | undefined;
}

/** Largest number of member names in a line. */
const MAX_NAMES = 32;

/** Creates the log line of a request that has ended. @param end `ms`: duration in milliseconds */
export function requestLogLine(record: RequestRecord, { ms, ending }: { ms: number; ending: string }): RequestLogLine {
  const { entry } = record;
  const line: RequestLogLine = {
    level: levelOf(record),
    event: "request",
    request_id: record.id,
    method: record.method,
    route: record.route === "" ? undefined : record.route,
    endpoint: endpointOf(record),
    status: record.status,
    ending,
    kind: record.kind,
    code: record.code,
    param: record.param,
    key_id: record.keyId,
    key_name: record.keyName,
    group: record.group,
    client_address: record.address,
    model: record.requestedModel,
    model_answered: answeredBy(record),
    upstream_protocol: record.upstreamProtocol,
    streamed: record.streamed,
    dropped: entry?.details?.dropped?.slice(0, MAX_NAMES).join(","),
    bytes_in: record.bytesIn,
    bytes_out: record.bytesOut,
    total_ms: Math.round(ms),
  };
  if (entry === undefined) return line;
  line.upstream = entry.upstream === "" ? undefined : entry.upstream;
  line.attempts = entry.attempts;
  line.first_ms = entry.firstMs;
  for (const [name, count] of Object.entries(entry.tokens)) {
    if (count > 0) line[`tokens_${name}`] = count;
  }
  for (const { item, count } of entry.details?.extras ?? []) line[`extra_${item}`] = count;
  line.images = entry.images > 0 ? entry.images : undefined;
  line.source = entry.source;
  line.cost = formatUsd(entry.cost);
  return line;
}

/** Returns the model of the last attempt; `undefined` without attempts. */
function answeredBy({ entry }: RequestRecord): string | undefined {
  if (entry === undefined || entry.attempts === 0) return undefined;
  return entry.model === "" ? undefined : entry.model;
}

/** Returns `error` for failures of the gateway itself, and `warn` for failures of others and for overload. */
function levelOf({ kind, status }: RequestRecord): RequestLogLine["level"] {
  if (kind === "internal") return "error";
  return status >= 500 || kind === "upstream" || kind === "timeout" || kind === "overloaded" ? "warn" : "info";
}

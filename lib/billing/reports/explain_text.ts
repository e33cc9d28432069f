/** Formats the explanation of a request as text. */
import { grouped } from "../../text.ts";
import type { Affinity, ContextTier, ImageSizes, UsageSource } from "../../store/ledger.ts";
import { attemptLines, skippedLines } from "./reason_text.ts";
import type { EndedRequest, Explanation } from "./request_schemas.ts";

/** Names of price classes in sentences, for one unit and for several. */
const CLASS_NAMES: Readonly<Partial<Record<string, readonly [one: string, several: string]>>> = {
  prompt: ["prompt token", "prompt tokens"],
  input_cache_read: ["token read from the cache", "tokens read from the cache"],
  input_cache_write_5m: ["token written to the cache for 5 minutes", "tokens written to the cache for 5 minutes"],
  input_cache_write_1h: ["token written to the cache for 1 hour", "tokens written to the cache for 1 hour"],
  completion: ["completion token", "completion tokens"],
  input_image: ["token of uploaded images", "tokens of uploaded images"],
  request: ["search", "searches"],
};

/** Descriptions of the sources of token counts. */
export const SOURCES: Readonly<Record<UsageSource, string>> = {
  upstream: "reported by the upstream",
  counted: "some or all counted by the gateway",
  estimated: "counted by the gateway; images and files are estimated",
  formula: "computed from the size of the images",
  none: "none, since nothing is charged",
};

/** Descriptions of whether the request went to the target that has its conversation in the prompt cache. */
const AFFINITIES: Readonly<Record<Affinity, string>> = {
  hit: "hit, the target that answered this conversation before",
  miss: "miss, the first request of this conversation, or the first after a long pause",
  moved: "moved, another target than the one that answered this conversation before",
};

/** Formats an explanation as lines of text. */
export function explanationText(explanation: Explanation): string {
  const { id, at, key, key_id, group, model, endpoint } = explanation;
  const facts: [string, string | null][] = [
    ["Request", id],
    ["Received", at],
    ["Key", key === key_id ? key_id : `${key} (${key_id})`],
    ["Group", group],
    ["Model", model ?? "none was chosen"],
    ["Endpoint", endpoint],
    ...(explanation.state === "running"
      ? [["State", `running; ${explanation.held_usd} USD is held for it`] as [string, string]]
      : endedFacts(explanation)),
  ];
  const head = facts.map(([name, text]) => text === null ? "" : `${`${name}:`.padEnd(14)}${text}\n`).join("");
  if (explanation.state === "running") return head;
  const why = explanation.why === null ? "" : `${explanation.why}\n\n`;
  const lines = [...attemptLines(explanation.attempt_list), ...skippedLines(explanation.skipped)];
  const attempts = lines.map((line) => `  ${line}\n`).join("");
  return `${why}${head}${attempts === "" ? "" : `\nAttempts:\n${attempts}`}\n${arithmetic(explanation)}`;
}

/** Lists the facts of an ended request; the caller leaves out those whose text is `null`. */
function endedFacts(request: EndedRequest): [string, string | null][] {
  const { upstream, attempts, status, ending, first_ms, total_ms, images, image_sizes, tokens, seq } = request;
  const { affinity, cache_saved_usd, context_tier, price_version } = request;
  // The process that served a lost request recorded neither its upstream nor its end.
  const isLost = ending === "lost";
  const firstOutput = first_ms === null ? "" : `first output after ${grouped(first_ms)} ms${outsideText(request)}, `;
  const noUpstream = isLost ? "unknown" : "none was asked";
  return [
    ["Upstream", upstream === null ? noUpstream : `${upstream}${attempts > 1 ? ` (${attempts} attempts)` : ""}`],
    ["Upstream id", request.upstream_request_id],
    ["Status", `${status === 0 ? "unknown" : status}, ${ending}`],
    ["Time", isLost ? "unknown" : `${firstOutput}end after ${grouped(total_ms)} ms`],
    ["Images", images > 0 ? grouped(images) : null],
    ["Image sizes", image_sizes && sizesText(image_sizes)],
    ["Dropped", request.dropped.join(", ") || null],
    ["Output limit", outputLimitText(request)],
    ["User", request.user],
    ["Tags", request.tags.join(", ") || null],
    ["Service tier", request.service_tier],
    ["Context tier", context_tier && contextTierText(context_tier)],
    ["Time window", request.price_window],
    ["Affinity", affinity && AFFINITIES[affinity]],
    ["Prompt cache", cache_saved_usd && cacheText(cache_saved_usd)],
    ["Reasoning", reasoningText(tokens)],
    ["Token counts", SOURCES[request.source]],
    ["Ledger", `entry ${seq}${price_version === null ? "" : `, price version ${price_version}`}`],
  ];
}

function outputLimitText({ max_tokens, requested_max_tokens }: EndedRequest): string | null {
  if (max_tokens !== null) return `${grouped(max_tokens)} tokens: the budget did not cover more`;
  return requested_max_tokens === null ? null : `${grouped(requested_max_tokens)} tokens: the client asked for no more`;
}

function reasoningText({ reasoning, completion }: EndedRequest["tokens"]): string | null {
  if (reasoning === 0) return null;
  return reasoning === completion
    ? `all ${grouped(completion)} completion tokens: none is left for an answer`
    : `${grouped(reasoning)} of the completion tokens`;
}

/** Minimum time outside of the attempts that is shown, in milliseconds. */
const MIN_OUTSIDE_MS = 1_000;

/** Describes the time before the first output that no attempt took; empty if it is short or unknown. */
function outsideText({ first_ms, attempt_list }: EndedRequest): string {
  if (first_ms === null || attempt_list.length === 0) return "";
  const outside = attempt_list.reduce((rest, { ms }) => rest - ms, first_ms);
  return outside < MIN_OUTSIDE_MS ? "" : ` (${grouped(outside)} ms of it outside of the attempts)`;
}

function cacheText(saved: string): string {
  return saved.startsWith("-") ? `writing to it cost ${saved.slice(1)} USD more` : `saved ${saved} USD`;
}

/** Describes the context tier of the prices, such as `above 200,000 tokens of input`. */
export function contextTierText({ above, up_to }: ContextTier): string {
  const from = above === 0 ? undefined : `above ${grouped(above)}`;
  const to = up_to === undefined ? undefined : `up to ${grouped(up_to)}`;
  return `${[from, to].filter((part) => part !== undefined).join(", ")} tokens of input`;
}

/** Describes the delivered sizes; `null` if all of them are as requested. */
function sizesText({ asked, delivered }: ImageSizes): string | null {
  if (delivered.every((size) => size === asked)) return null;
  const counts = new Map<string, number>();
  for (const size of delivered) counts.set(size, (counts.get(size) ?? 0) + 1);
  const sizes = [...counts].map(([size, count]) => count === 1 ? size : `${size} (${count} times)`).join(", ");
  return `asked for ${asked}, delivered ${sizes}; billed by the size delivered`;
}

/** Formats how the charged amount was computed. */
function arithmetic(request: EndedRequest): string {
  const lines = request.lines.map(({ class: name, tokens, price_usd, factor, amount_usd }) => {
    const times = factor === "1" ? "" : ` x ${factor}`;
    return `  ${grouped(tokens)} ${wordsOf(name, tokens)} x ${price_usd} USD${times} = ${amount_usd} USD`;
  });
  const { sum_usd, held_usd, released_usd, overrun_usd, charged_usd, upstream_usd, why_free, adds_up } = request;
  return [
    ...lines,
    ...(lines.length > 0 ? [`  Sum: ${sum_usd} USD`] : []),
    held_usd === "0" ? "  Held: nothing" : `  Held: ${held_usd} USD, of which ${released_usd} USD was released`,
    ...(overrun_usd === "0" ? [] : [`  Beyond the held amount: ${overrun_usd} USD, paid by the operator`]),
    `  Charged: ${charged_usd} USD${why_free === null ? "" : ` (${why_free})`}`,
    ...(upstream_usd === null ? [] : [`  Cost at the upstream: ${upstream_usd} USD`]),
    ...(adds_up ? [] : ["  This does not add up: the entry or its prices were changed. Run the audit"]),
    "",
  ].join("\n");
}

/** Returns the name of billed units, such as tokens or searches. */
function wordsOf(name: string, count: number): string {
  const [, tool] = /^hosted_tools\.(.+)$/.exec(name) ?? [];
  const [one, several] = tool === undefined
    ? CLASS_NAMES[name] ?? [name, name]
    : [`call of ${tool}`, `calls of ${tool}`];
  return count === 1 ? one : several;
}

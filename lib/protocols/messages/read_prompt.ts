/** Reads the bodies of `/v1/messages` and `/v1/messages/count_tokens`. */
import { MAX_CACHE_MARKS } from "../canonical/cache_mark.ts";
import { effortOf } from "../canonical/effort.ts";
import type { OutputFormat, Prompt, Reasoning } from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import { type ContentSizes, isObject, type JsonObject } from "../../json/mod.ts";
import type { ClientPermissions, PrewrittenJson } from "../codec.ts";
import { checkCount } from "../fields.ts";
import { booleanOf, numberOf, objectOf, objectsOf, present, stringOf, textsOf } from "../members.ts";
import { plainPrompt, plainSizes } from "../plain_contents.ts";
import { type ReadContext, readMessages, readSystem, writeInputs } from "./read_content.ts";
import { readToolChoice, readTools } from "./read_tools.ts";

const MODELLED = new Set(
  `model messages system max_tokens temperature top_p top_k stop_sequences stream tools tool_choice thinking
  output_config output_format metadata provider models`.split(/\s+/),
);
const MODELLED_WITH_FALLBACKS = new Set([...MODELLED, "fallbacks"]);
const THINKING_MEMBERS = new Set(["type", "budget_tokens", "display"]);
const MODES: ReadonlyMap<unknown, Reasoning["mode"]> = new Map([["enabled", "manual"], ["adaptive", "adaptive"]]);
const INNER_MEMBERS = { output_config: new Set(["effort", "format"]), metadata: new Set(["user_id"]) };

/**
 * Reads a request for an answer, or to count tokens, which has neither `max_tokens` nor `stream`.
 * @throws {GatewayError} `invalid`, for what the schema cannot check
 */
export function readPrompt(body: JsonObject, permissions?: ClientPermissions): Prompt {
  return { ...readSettings(body), ...readContents(body, { permissions }) };
}

/** As `readPrompt`, in steps. */
export function* readSteps(body: JsonObject, permissions?: ClientPermissions): Generator<void, Prompt> {
  const texts = yield* writeInputs(body);
  return { ...readSettings(body), ...readContents(body, { permissions, texts }) };
}

/** Reads a request whose contents are plain. @throws {GatewayError} `invalid`, as `readPrompt` */
export function readPlainPrompt(head: JsonObject, sizes: ContentSizes, body: () => JsonObject): Prompt {
  const messages = (sizes.entries.get("messages") ?? 0) + (sizes.entries.has("system") ? 1 : 0);
  return plainPrompt(
    readSettings(head),
    plainSizes(sizes, { messages, issuer: "anthropic" }),
    () => readContents(body()),
  );
}

function readContents(
  body: JsonObject,
  { permissions, texts }: { permissions?: ClientPermissions | undefined; texts?: PrewrittenJson } = {},
): Pick<Prompt, "messages" | "tools"> {
  const context: ReadContext = { cacheMarks: 0, images: 0, texts, permissions };
  const contents = {
    messages: [...readSystem(body.system, context), ...readMessages(body.messages, context)],
    tools: readTools(body.tools, context),
  };
  checkCounts(context);
  return contents;
}

function readSettings(body: JsonObject): Omit<Prompt, "messages" | "tools"> {
  // A list of fallbacks is a feature of the gateway; any other value is for the vendor.
  const modelled = Array.isArray(body.fallbacks) ? MODELLED_WITH_FALLBACKS : MODELLED;
  const maxTokens = numberOf(body.max_tokens);
  const reasoning = readReasoning(body);
  checkBudget(reasoning?.budgetTokens, maxTokens);
  return {
    ...present({
      protocol: "messages",
      model: stringOf(body.model) ?? "",
      ...readToolChoice(body.tool_choice),
      stop: textsOf(body.stop_sequences),
      sampling: present({
        temperature: numberOf(body.temperature),
        topP: numberOf(body.top_p),
        topK: numberOf(body.top_k),
      }),
      maxTokens,
      reasoning,
      format: readFormat(body),
      stream: booleanOf(body.stream) ?? false,
      provider: objectOf(body.provider),
      fallbacks: readFallbacks(body),
      user: stringOf(objectOf(body.metadata)?.user_id),
    }),
    ...unknownIn("messages", body, modelled, { inner: INNER_MEMBERS }),
  };
}

function readReasoning({ thinking, output_config: config }: JsonObject): Reasoning | undefined {
  const effort = isObject(config) ? effortOf(config.effort) : undefined;
  if (!isObject(thinking)) return effort === undefined ? undefined : { effort };
  const { type, display } = thinking;
  const isModelled = display === "summarized" || display === "omitted";
  return {
    ...present({
      mode: MODES.get(type) ?? "off",
      budgetTokens: type === "enabled" ? numberOf(thinking.budget_tokens) : undefined,
      effort,
      display: isModelled ? display : undefined,
    }),
    ...unknownIn("messages", thinking, THINKING_MEMBERS, {
      more: {
        // With `between_tools` the model reports progress but does not think, which other protocols call `off`.
        type: type === "between_tools" ? type : undefined,
        display: isModelled ? undefined : stringOf(display),
      },
    }),
  };
}

function readFormat({ output_config: config, output_format: olderFormat }: JsonObject): OutputFormat | undefined {
  const format = isObject(config) && isObject(config.format) ? config.format : undefined;
  if (format !== undefined && isObject(olderFormat)) {
    throw new GatewayError("invalid", "Cannot use both output_format and output_config.format", {
      param: "output_format",
    });
  }
  const chosen = format ?? olderFormat;
  if (!isObject(chosen)) return undefined;
  return { type: "json_schema", schema: objectOf(chosen.schema) ?? {} };
}

/** Reads the models to try next: `models`, then `fallbacks`. */
function readFallbacks({ models, fallbacks }: JsonObject): string[] | undefined {
  const ids = Array.isArray(models) ? textsOf(models) : undefined;
  if (!Array.isArray(fallbacks)) return ids;
  const fallbackIds = objectsOf(fallbacks).map(({ model, ...others }, index) => {
    const [other] = Object.keys(others);
    if (other === undefined) return stringOf(model) ?? "";
    throw new GatewayError("invalid", `Cannot use fallbacks[${index}].${other}: only model is supported there`, {
      param: `fallbacks[${index}].${other}`,
    });
  });
  return [...ids ?? [], ...fallbackIds];
}

function checkBudget(budget: number | undefined, maxTokens: number | undefined): void {
  if (budget === undefined || maxTokens === undefined || budget < maxTokens) return;
  const message = `Expected thinking.budget_tokens (${budget}) to be less than max_tokens (${maxTokens})`;
  throw new GatewayError("invalid", message, { param: "thinking.budget_tokens" });
}

function checkCounts({ cacheMarks, images }: ReadContext): void {
  if (cacheMarks > MAX_CACHE_MARKS) {
    const message = `A maximum of ${MAX_CACHE_MARKS} blocks with cache_control may be provided. Found ${cacheMarks}.`;
    throw new GatewayError("invalid", message);
  }
  checkCount("images", images, "messages");
}

/** Request schemas shared by several protocols, and the texts of failed checks. */
import { z } from "zod";
import { EFFORTS } from "./canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { isInteger, isRawNumber, type JsonObject } from "../json/mod.ts";
import { cutAfterFault, type FastPathValidator, fastPathValidator } from "./fast_path_validator.ts";

/** Most items of each kind in one request. */
export const COUNTS = { messages: 4_096, parts: 1_024, images: 64, tools: 256, stops: 16, fallbacks: 16 } as const;

/** A JSON object that is not validated: a JSON Schema, metadata, a hosted tool. */
export const objectField: z.ZodType<Record<string, unknown>> = z.record(z.string(), z.unknown());

/** Creates the message for a value that no option of a union accepts. */
export function unknownType(value: string): { error: (issue: z.core.$ZodRawIssue) => string | undefined } {
  return {
    error({ code, input }) {
      if (code !== "invalid_union" || typeof input !== "object" || input === null) return undefined;
      const type: unknown = "type" in input ? input.type : undefined;
      if (type === undefined) return `Expected the type of the ${value}`;
      return `Unexpected ${value} type ${JSON.stringify(typeof type === "string" ? type.slice(0, 64) : type)}`;
    },
  };
}

/** A token count of at least 1. */
export const tokensField: z.ZodType<number> = z.number().int().min(1).max(1_000_000_000);

/** A seed: vendors accept integers beyond the precision of a double. */
export const seedField: z.ZodType<unknown> = z.unknown().refine(isInteger, { error: "Expected an integer" })
  .meta({ type: "integer" });

/** A stop sequence. Its length is limited, since every piece of an answer is searched for it. */
export const stopText: z.ZodString = z.string().max(1_024);

/** Name of a tool: OpenAI allows 64 characters, Anthropic 128, dots come from namespaces. */
export const toolNameField: z.ZodType<string> = z.string().min(1).max(128).regex(/^[A-Za-z0-9_.:-]+$/, {
  error: "Expected a tool name of letters, digits and _ - . :",
});

/** Reasoning depth. */
export const effortField: z.ZodType<typeof EFFORTS[number]> = z.enum(EFFORTS);

/** At most 16 pairs of strings. */
export const metadataField: z.ZodType<Record<string, string>> = z.record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, { error: "Expected at most 16 pairs" });

/** OpenAI's opaque id of the end user. */
export const safetyIdentifierField: z.ZodType<string> = z.string().max(64);

/** Lifetime of the prompt cache (the older member). */
export const cacheRetentionField: z.ZodType<string> = z.enum(["in_memory", "in-memory", "24h"]);

/** Options of the prompt cache. */
export const cacheOptionsField: z.ZodType<Record<string, unknown>> = z.looseObject({
  mode: z.enum(["implicit", "explicit"]).nullish(),
  ttl: z.string().nullish(),
});

const priceField = z.union([z.string(), z.number()]);
const percentileField = z.union([
  z.number(),
  z.looseObject({
    p50: z.number().nullish(),
    p75: z.number().nullish(),
    p90: z.number().nullish(),
    p99: z.number().nullish(),
  }),
]);
const sortNames = z.enum(["price", "throughput", "latency", "exacto"]);

/** Provider preferences (`provider`), an extension of OpenRouter. */
export const providerField: z.ZodType<Record<string, unknown>> = z.looseObject({
  order: z.array(z.string()).nullish(),
  only: z.array(z.string()).nullish(),
  ignore: z.array(z.string()).nullish(),
  allow_fallbacks: z.boolean().nullish(),
  require_parameters: z.boolean().nullish(),
  data_collection: z.enum(["allow", "deny"]).nullish(),
  zdr: z.boolean().nullish(),
  enforce_distillable_text: z.boolean().nullish(),
  quantizations: z.array(z.string()).nullish(),
  sort: z.union([
    sortNames,
    z.looseObject({ by: sortNames.nullish(), partition: z.enum(["model", "none"]).nullish() }),
  ]).nullish(),
  preferred_min_throughput: percentileField.nullish(),
  preferred_max_latency: percentileField.nullish(),
  max_price: z.looseObject({
    prompt: priceField.optional(),
    completion: priceField.optional(),
    request: priceField.optional(),
    image: priceField.optional(),
    audio: priceField.optional(),
  }).optional(),
});

/** Fallback models (`models`), an extension of OpenRouter. */
export const fallbacksField: z.ZodType<string[]> = z.array(z.string().min(1).max(256)).max(COUNTS.fallbacks);

/** Cached validators of whole bodies. */
const fastValidators = new WeakMap<z.ZodType, FastPathValidator>();

/**
 * Checks a request body without copying it.
 * @throws {GatewayError} `invalid`, naming the first invalid member
 */
export function checkBody(schema: z.ZodType, body: JsonObject): void {
  let isSure = fastValidators.get(schema);
  if (isSure === undefined) fastValidators.set(schema, isSure = fastPathValidator(schema));
  if (isSure(body)) return;
  for (const value of new Set([cutAfterFault(body, isSure), body])) {
    const result = schema.safeParse(value, { reportInput: true });
    if (!result.success) throw invalidBody(result.error);
  }
}

/** Cached validators of bodies without their contents. */
const sureHeads = new WeakMap<z.ZodType, FastPathValidator>();

/**
 * Returns whether the schema certainly accepts a body, apart from its contents.
 * @param contents names of members that were checked already
 */
export function acceptsHead(
  schema: z.ZodObject<z.ZodRawShape, z.core.$loose>,
  contents: Iterable<string>,
  head: JsonObject,
): boolean {
  let isSure = sureHeads.get(schema);
  if (isSure === undefined) {
    const others = schema.omit(Object.fromEntries(Array.from(contents, (name) => [name, true])));
    sureHeads.set(schema, isSure = fastPathValidator(others));
  }
  return isSure(head);
}

/** The error of a failed check: path and message of the deepest issue in the best-matching branch. */
function invalidBody(error: z.ZodError): GatewayError {
  const { path, issue } = firstIssue(error.issues, []);
  const param = writePath(path);
  const missing = issue.input === undefined && ["invalid_type", "invalid_value", "invalid_union"].includes(issue.code);
  const message = missing
    ? `Missing required parameter: ${param}`
    : `Invalid value for ${param || "the body"}: ${complaint(issue)}`;
  // The messages of these issues quote the body.
  const isQuote = missing || ["invalid_union", "unrecognized_keys"].includes(issue.code);
  return new GatewayError("invalid", message, {
    ...(param !== "" && { param }),
    ...(!isQuote && { rule: complaint(issue) }),
    ...(missing && { code: "missing_required_parameter" }),
  });
}

type Issue = z.core.$ZodIssue;

/** The message of an issue. A number kept as text is an object to zod. */
function complaint(issue: Issue): string {
  if (!isRawNumber(issue.input)) return issue.message;
  return issue.code === "invalid_type" && issue.expected === "number"
    ? "Expected a number that a 64-bit float holds exactly"
    : issue.message.replace("received object", "received number");
}

/** A union reports one list of issues per branch: the branch with the deepest issue is the most useful. */
function firstIssue(issues: readonly Issue[], prefix: readonly PropertyKey[]): { path: PropertyKey[]; issue: Issue } {
  const [issue] = issues;
  if (issue === undefined) throw new RangeError("Cannot report a failed check: it has no issue");
  const path = [...prefix, ...issue.path];
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return { path, issue };
  const branches = issue.errors.filter((branch) => branch.length > 0).map((branch) => firstIssue(branch, path));
  const deepest = branches.sort((a, b) => b.path.length - a.path.length)[0];
  return deepest === undefined || deepest.path.length === path.length ? { path, issue } : deepest;
}

/** Formats a path: `["messages", 0, "content"]` becomes `messages[0].content`. */
function writePath(path: readonly PropertyKey[]): string {
  return path.map((part) => typeof part === "number" ? `[${part}]` : `.${String(part)}`).join("").replace(/^\./, "");
}

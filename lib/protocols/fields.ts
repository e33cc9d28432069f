/** Schemas of members that several protocols share, and the check of request bodies with its error texts. */
import { z } from "zod";
import { EFFORTS } from "./canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { issueText } from "../issue_text.ts";
import { isInteger, type JsonObject } from "../json/mod.ts";
import { cutAfterFault, type FastPathValidator, fastPathValidator } from "./fast_path_validator.ts";

/** Limits of a request: the number of items of each kind. */
export const COUNTS = { messages: 4_096, parts: 1_024, images: 64, tools: 256, stops: 16, fallbacks: 16 } as const;

/** Checks the number of images or tools. @throws {GatewayError} `invalid`, if there are too many */
export function checkCount(what: "images" | "tools", count: number, param: string): void {
  if (count <= COUNTS[what]) return;
  throw new GatewayError("invalid", `Too many ${what}: ${count}, at most ${COUNTS[what]} are allowed`, { param });
}

/** A JSON object that is not validated: a JSON Schema, metadata, a hosted tool. */
export const objectField: z.ZodType<Record<string, unknown>> = z.record(z.string(), z.unknown());

/** Returns the error option of a union: its message names the unknown type of the value. */
export function unknownType(thing: string): { error: (issue: z.core.$ZodRawIssue) => string | undefined } {
  return {
    error({ code, input }) {
      if (code !== "invalid_union" || typeof input !== "object" || input === null) return undefined;
      const type: unknown = "type" in input ? input.type : undefined;
      if (type === undefined) return `Expected the type of the ${thing}`;
      return `Unexpected ${thing} type ${JSON.stringify(typeof type === "string" ? type.slice(0, 64) : type)}`;
    },
  };
}

/** Returns the error option of a union. If the member that selects the schema is wrong, the error says what is expected. */
export function expecting(what: string): { error: (issue: { code?: string }) => string | undefined } {
  return { error: ({ code }) => code === "invalid_union" ? `Expected ${what}` : undefined };
}

/** A token count of at least 1. */
export const tokensField: z.ZodType<number> = z.number().int().min(1).max(1_000_000_000);

/** A seed: vendors accept integers beyond the precision of a double. */
export const seedField: z.ZodType<unknown> = z.unknown().refine(isInteger, { error: "Expected an integer" })
  .meta({ type: "integer" });

/** A stop sequence. Its length is limited because every piece of an answer is searched for it. */
export const stopText: z.ZodString = z.string().max(1_024);

/** Name of a tool. OpenAI allows 64 characters, Anthropic 128; names with a namespace have dots. */
export const toolNameField: z.ZodType<string> = z.string().min(1).max(128).regex(/^[A-Za-z0-9_.:-]+$/, {
  error: "Expected a tool name of letters, digits and _ - . :",
});

/** The tool name in a past call: a model wrote it, so it need not be a valid tool name. */
export const calledNameField: z.ZodString = z.string().min(1).max(256);

/** Id of a past call. Servers wrote it: some leave it empty, others put a signature into it. */
export const callIdField: z.ZodString = z.string();

/** Reasoning depth. */
export const effortField: z.ZodType<typeof EFFORTS[number]> = z.enum(EFFORTS);

/** Metadata: at most 16 pairs of strings. */
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

const bodyValidators = new WeakMap<z.ZodType, FastPathValidator>();

/** Checks a request body without copying it. @throws {GatewayError} `invalid`, naming the first invalid member */
export function checkBody(schema: z.ZodType, body: JsonObject): void {
  let accepts = bodyValidators.get(schema);
  if (accepts === undefined) bodyValidators.set(schema, accepts = fastPathValidator(schema));
  if (accepts(body)) return;
  for (const value of new Set([cutAfterFault(body, accepts), body])) {
    const result = schema.safeParse(value, { reportInput: true, error: issueText });
    if (!result.success) throw invalidBody(result.error, body);
  }
}

const headValidators = new WeakMap<z.ZodType, FastPathValidator>();

/**
 * Returns true if the schema certainly accepts a body without its contents; false means that the body must be checked.
 * @param contents names of the members with contents, which are not checked
 */
export function acceptsHead(
  schema: z.ZodObject<z.ZodRawShape, z.core.$loose>,
  contents: Iterable<string>,
  head: JsonObject,
): boolean {
  let accepts = headValidators.get(schema);
  if (accepts === undefined) {
    const others = schema.omit(Object.fromEntries(Array.from(contents, (name) => [name, true])));
    headValidators.set(schema, accepts = fastPathValidator(others));
  }
  return accepts(head);
}

/** The endpoints of bodies, by the member with the conversation. */
const ENDPOINTS: ReadonlyMap<string, string> = new Map([
  ["messages", "POST /v1/chat/completions or POST /anthropic/v1/messages"],
  ["input", "POST /v1/responses"],
  ["contents", "POST /v1beta/models/{model}:generateContent"],
]);

/** Returns a hint if the body has the conversation in the member of another endpoint; otherwise "". */
function endpointHint({ issues }: z.ZodError, body: JsonObject): string {
  const lacksOwn = issues.some(({ path: [name, ...inner], input }) =>
    input === undefined && inner.length === 0 && ENDPOINTS.has(String(name))
  );
  const [other, endpoint] = [...ENDPOINTS].find(([name]) => lacksOwn && body[name] !== undefined) ?? [];
  return other === undefined ? "" : `. A body with "${other}" belongs to ${endpoint}`;
}

/** Returns the error for an invalid body, with the path and message of its most useful issue. */
function invalidBody(error: z.ZodError, body: JsonObject): GatewayError {
  const { path, issue } = firstIssue(error.issues, []);
  const param = writePath(path);
  const isMissing = issue.input === undefined &&
    ["invalid_type", "invalid_value", "invalid_union"].includes(issue.code);
  const message = isMissing
    ? `Missing required parameter: ${param}${endpointHint(error, body)}`
    : `Invalid value for ${param || "the body"}: ${issue.message}`;
  // The messages of these issues quote the body.
  const quotesBody = isMissing || ["invalid_union", "unrecognized_keys"].includes(issue.code);
  return new GatewayError("invalid", message, {
    ...(param !== "" && { param }),
    ...(!quotesBody && { rule: issue.message }),
    ...(isMissing && { code: "missing_required_parameter" }),
  });
}

type Issue = z.core.$ZodIssue;

/** Returns the first issue; of a union, which has a list of issues for each option, that with the longest path. */
function firstIssue(issues: readonly Issue[], prefix: readonly PropertyKey[]): { path: PropertyKey[]; issue: Issue } {
  const [issue] = issues;
  if (issue === undefined) throw new RangeError("Cannot report a failed check: it has no issue");
  const path = [...prefix, ...issue.path];
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return { path, issue };
  const optionIssues = issue.errors.filter((branch) => branch.length > 0).map((branch) => firstIssue(branch, path));
  const deepest = optionIssues.sort((a, b) => b.path.length - a.path.length)[0];
  return deepest === undefined || deepest.path.length === path.length ? { path, issue } : deepest;
}

/** Returns a path as text: `["messages", 0, "content"]` becomes `messages[0].content`. */
function writePath(path: readonly PropertyKey[]): string {
  return path.map((part) => typeof part === "number" ? `[${part}]` : `.${String(part)}`).join("").replace(/^\./, "");
}

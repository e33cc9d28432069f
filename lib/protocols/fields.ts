/** Pieces of request schemas that more than one protocol uses, and what a failed check says. */
import { z } from "zod";
import { EFFORTS } from "./canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { isInteger, isRawNumber, type JsonObject } from "../json/mod.ts";
import { type FastPathValidator, fastPathValidator } from "./fast_path_validator.ts";

/** How many of each thing one request may hold. */
export const COUNTS = { messages: 4_096, parts: 1_024, images: 64, tools: 256, stops: 16, fallbacks: 16 } as const;

/** A JSON object whose members are nobody's business here: a JSON Schema, metadata, a hosted tool. */
export const objectField: z.ZodType<Record<string, unknown>> = z.record(z.string(), z.unknown());

/** Says which type a value has that no branch of a union knows. */
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

/** A count of tokens that must be at least one. */
export const tokensField: z.ZodType<number> = z.number().int().min(1).max(1_000_000_000);

/** A seed for sampling: vendors take integers of more bits than a double holds. */
export const seedField: z.ZodType<unknown> = z.unknown().refine(isInteger, { error: "Expected an integer" })
  .meta({ type: "integer" });

/** A text that ends the answer. Every piece of an answer is searched for it, so it cannot be of any length. */
export const stopText: z.ZodString = z.string().max(1_024);

/** Name of a tool: OpenAI allows 64 characters, Anthropic 128, dots come from namespaces. */
export const toolNameField: z.ZodType<string> = z.string().min(1).max(128).regex(/^[A-Za-z0-9_.:-]+$/, {
  error: "Expected a tool name of letters, digits and _ - . :",
});

/** Reasoning depth. */
export const effortField: z.ZodType<typeof EFFORTS[number]> = z.enum(EFFORTS);

/** At most 16 string pairs. */
export const metadataField: z.ZodType<Record<string, string>> = z.record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, { error: "Expected at most 16 pairs" });

/** Opaque id of the end user, as OpenAI's protocols know it. */
export const safetyIdentifierField: z.ZodType<string> = z.string().max(64);

/** How long the prompt cache is kept, the older member. */
export const cacheRetentionField: z.ZodType<string> = z.enum(["in_memory", "in-memory", "24h"]);

/** How the prompt cache works. */
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

/** Routing wishes (`provider`), an extension that OpenRouter's clients send. */
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

/** Models to try next (`models`), an extension that OpenRouter's clients send. */
export const fallbacksField: z.ZodType<string[]> = z.array(z.string().min(1).max(256)).max(COUNTS.fallbacks);

/** What is made once of each schema. */
const sure = new WeakMap<z.ZodType, FastPathValidator>();

/**
 * Checks a request body. The value is judged, not copied: what is read later is the body as the client sent it.
 * @throws {GatewayError} `invalid`, naming the first member that is wrong
 */
export function checkBody(schema: z.ZodType, body: JsonObject): void {
  let isSure = sure.get(schema);
  if (isSure === undefined) sure.set(schema, isSure = fastPathValidator(schema));
  if (isSure(body)) return;
  const result = schema.safeParse(body, { reportInput: true });
  if (!result.success) throw invalidBody(result.error);
}

/** Facts of each schema without the contents, made once. */
const sureHeads = new WeakMap<z.ZodType, FastPathValidator>();

/**
 * True if the schema surely accepts a body, the contents aside.
 * @param contents names of members that are right already
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

/** The error for a failed check: the deepest issue of the best-fitting branch, as path and message. */
function invalidBody(error: z.ZodError): GatewayError {
  const { path, issue } = firstIssue(error.issues, []);
  const param = writePath(path);
  const missing = issue.input === undefined && ["invalid_type", "invalid_value", "invalid_union"].includes(issue.code);
  const message = missing
    ? `Missing required parameter: ${param}`
    : `Invalid value for ${param || "the body"}: ${complaint(issue)}`;
  return new GatewayError("invalid", message, {
    ...(param !== "" && { param }),
    ...(missing && { code: "missing_required_parameter" }),
  });
}

type Issue = z.core.$ZodIssue;

/** What the check says. A number that is kept as its text looks like an object to it. */
function complaint(issue: Issue): string {
  if (!isRawNumber(issue.input)) return issue.message;
  return issue.code === "invalid_type" && issue.expected === "number"
    ? "Expected a number that a 64-bit float holds exactly"
    : issue.message.replace("received object", "received number");
}

/** A union reports one list of issues per branch: the branch that got furthest into the value tells most. */
function firstIssue(issues: readonly Issue[], prefix: readonly PropertyKey[]): { path: PropertyKey[]; issue: Issue } {
  const [issue] = issues;
  if (issue === undefined) throw new RangeError("Cannot report a failed check: it has no issue");
  const path = [...prefix, ...issue.path];
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return { path, issue };
  const branches = issue.errors.filter((branch) => branch.length > 0).map((branch) => firstIssue(branch, path));
  const deepest = branches.sort((a, b) => b.path.length - a.path.length)[0];
  return deepest === undefined || deepest.path.length === path.length ? { path, issue } : deepest;
}

/** `["messages", 0, "content"]` as `messages[0].content`. */
function writePath(path: readonly PropertyKey[]): string {
  return path.map((part) => typeof part === "number" ? `[${part}]` : `.${String(part)}`).join("").replace(/^\./, "");
}

/** Reads and checks requests for embeddings. */
import { z } from "zod";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { Json } from "../json/mod.ts";
import { checkBody, fallbacksField, providerField } from "../protocols/fields.ts";
import type { JsonBody } from "../server/parse_body.ts";
import { checkSpellings } from "./check_spellings.ts";
import type { EmbeddingInput, EmbeddingsRequest } from "./types.ts";

/**
 * Maximum number of inputs of a request. OpenAI: "any array must be 2048 dimensions or less"
 * (https://platform.openai.com/docs/api-reference/embeddings/create).
 */
const MAX_INPUTS = 2_048;
/** Maximum number of token ids of an input: OpenAI's limit of tokens per input, from the same page. */
const MAX_TOKEN_IDS = 8_192;

/** Largest id of a token. No vocabulary is larger. */
const MAX_TOKEN_ID = 10_000_000;

const tokensSchema = {
  type: "array",
  items: { type: "integer", minimum: 0, maximum: MAX_TOKEN_ID },
  minItems: 1,
  maxItems: MAX_TOKEN_IDS,
} as const;

/** Forms of the input, for the API description. `checkInput` checks them and stops at the first error. */
const INPUT_FORMS = [
  { type: "string", minLength: 1 },
  { type: "array", items: { type: "string", minLength: 1 }, minItems: 1, maxItems: MAX_INPUTS },
  tokensSchema,
  { type: "array", items: tokensSchema, minItems: 1, maxItems: MAX_INPUTS },
];

/** Body of `POST /v1/embeddings`. Unknown members are allowed. */
export const embeddingsSchema = z.looseObject({
  model: z.string().min(1).max(256),
  input: z.unknown().meta({ anyOf: INPUT_FORMS, description: "A text, an array of texts, or the same as tokens" }),
  dimensions: z.number().int().min(1).max(65_536).nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish().describe("Default: float"),
  user: z.string().nullish(),
  models: fallbacksField.nullish().describe(
    "Models to try if the first one fails; they must have the same vector space",
  ),
  provider: providerField.nullish(),
});

interface EmbeddingsBody {
  input: string | string[] | number[] | number[][];
  dimensions?: number | null;
  encoding_format?: "float" | "base64" | null;
}

/** Checks a request body. @throws {GatewayError} `invalid` */
export function checkEmbeddingsBody(body: JsonBody): void {
  checkSpellings(embeddingsSchema, body.value);
  checkBody(embeddingsSchema, body.value);
  checkInput(body.value.input);
}

function checkInput(input: Json | undefined): void {
  if (input === undefined) {
    throw new GatewayError("invalid", "Missing required parameter: input", {
      param: "input",
      code: "missing_required_parameter",
    });
  }
  if (typeof input === "string") return checkText(input, "input");
  if (!Array.isArray(input) || input.length === 0) {
    throw invalidInput(
      "input",
      `Expected a text, or an array of 1 to ${MAX_INPUTS} texts, tokens or arrays of tokens`,
    );
  }
  if (typeof input[0] === "number") return checkTokens(input, "input");
  if (input.length > MAX_INPUTS) throw invalidInput("input", `Expected at most ${MAX_INPUTS} inputs`);
  const areTexts = typeof input[0] === "string";
  for (const [index, item] of input.entries()) {
    const param = `input[${index}]`;
    if (areTexts) checkText(item, param);
    else checkTokens(item, param);
  }
}

function checkText(text: Json, param: string): void {
  if (typeof text !== "string" || text === "") throw invalidInput(param, "Expected a text that is not empty");
}

function checkTokens(tokens: Json, param: string): void {
  if (!Array.isArray(tokens) || tokens.length === 0 || tokens.length > MAX_TOKEN_IDS) {
    throw invalidInput(param, `Expected a text, or an array of 1 to ${MAX_TOKEN_IDS} tokens`);
  }
  const isToken = (id: Json) => typeof id === "number" && Number.isInteger(id) && id >= 0 && id <= MAX_TOKEN_ID;
  const wrong = tokens.findIndex((id) => !isToken(id));
  if (wrong >= 0) throw invalidInput(`${param}[${wrong}]`, "Expected a token, which is a whole number");
}

function invalidInput(param: string, expected: string): GatewayError {
  return new GatewayError("invalid", `Invalid value for ${param}: ${expected}`, { param });
}

/**
 * Reads a validated body for a model.
 * @throws {GatewayError} `invalid` for a vector length that the model does not have
 */
export function readEmbeddings(body: JsonBody, model: Model): EmbeddingsRequest {
  const { input, dimensions, encoding_format } = body.value as unknown as EmbeddingsBody;
  if (typeof dimensions === "number") checkDimensions(dimensions, model);
  return {
    kind: "embeddings",
    body,
    inputs: inputsOf(input),
    ...(typeof dimensions === "number" && { dimensions }),
    base64: encoding_format === "base64",
  };
}

function inputsOf(input: EmbeddingsBody["input"]): readonly EmbeddingInput[] {
  if (typeof input === "string") return [input];
  return typeof input[0] === "number" ? [input as number[]] : input as string[] | number[][];
}

function checkDimensions(requested: number, { id, embedding }: Model): void {
  if (embedding === undefined || requested === embedding.dimensions) return;
  const { dimensions: max, min_dimensions: min = max } = embedding;
  if (requested >= min && requested <= max) return;
  const expected = min === max ? `${max}` : `${min} to ${max}`;
  throw new GatewayError("invalid", `Invalid value for dimensions: model "${id}" has ${expected} dimensions`, {
    param: "dimensions",
  });
}

/** Reads requests for embeddings. */
import { z } from "zod";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import { checkBody, fallbacksField, providerField } from "../protocols/fields.ts";
import type { JsonBody } from "../server/router.ts";
import type { EmbeddingInput, EmbeddingsRequest } from "./types.ts";

/**
 * Most inputs of a request, and most tokens of an input given as tokens. OpenAI: "any array must be 2048 dimensions or
 * less", and 8,192 tokens for each input (https://platform.openai.com/docs/api-reference/embeddings/create).
 */
const MOST_INPUTS = 2_048;
const MOST_TOKEN_IDS = 8_192;

const textField = z.string({ error: "Expected a text that is not empty, or a token: a whole number" })
  .min(1, { error: "Expected a text that is not empty" });
const tokenField = z.number().int().min(0).max(10_000_000);

/** Body of `POST /v1/embeddings`. Unknown members pass. */
export const embeddingsSchema = z.looseObject({
  model: z.string().min(1).max(256),
  input: z.union([
    textField,
    z.array(textField).min(1),
    z.array(tokenField).min(1).max(MOST_TOKEN_IDS),
    z.array(z.array(tokenField).min(1).max(MOST_TOKEN_IDS)).min(1),
  ], { error: `Expected a text, or an array of 1 to ${MOST_INPUTS} texts, tokens or arrays of tokens` })
    // Not in the branches: the union would report what the longest array is not.
    .refine((input) => inputsOf(input).length <= MOST_INPUTS, { error: `Expected at most ${MOST_INPUTS} inputs` })
    .describe("One text or many, or their tokens"),
  dimensions: z.number().int().min(1).max(65_536).nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish().describe("Default: float"),
  user: z.string().nullish(),
  models: fallbacksField.nullish().describe("Models to try next; they must declare the same space of vectors"),
  provider: providerField.nullish(),
});

/** The members that the gateway reads. */
interface EmbeddingsBody {
  input: string | string[] | number[] | number[][];
  dimensions?: number | null;
  encoding_format?: "float" | "base64" | null;
}

/** Checks the body of a request. @throws {GatewayError} `invalid` */
export function checkEmbeddingsBody(body: JsonBody): void {
  checkBody(embeddingsSchema, body.value);
}

/** Reads a checked body for a model. @throws {GatewayError} `invalid` for a length of vectors that the model lacks */
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

function checkDimensions(asked: number, { id, embedding }: Model): void {
  if (embedding === undefined || asked === embedding.dimensions) return;
  const { dimensions: most, min_dimensions: least = most } = embedding;
  if (asked >= least && asked <= most) return;
  const expected = least === most ? `${most}` : `${least} to ${most}`;
  throw new GatewayError("invalid", `Invalid value for dimensions: model "${id}" has ${expected} dimensions`, {
    param: "dimensions",
  });
}

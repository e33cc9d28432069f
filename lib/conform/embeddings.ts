/** Checks of embeddings in OpenAI's format. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { type Checks, expectThat, Mismatch, shaped, show, Skip } from "./check.ts";
import { checkHeader } from "./http_checks.ts";
import { answerOf, bodyOf, type ModelPart, refusalChecks } from "./model_part.ts";
import { objectOf } from "./sse.ts";
import type { SuiteContext } from "./suite_context.ts";

/** Test inputs. The first two have the same meaning. */
const TEXTS = ["A red apple on a table", "A red apple lies on the table", "Quarterly tax returns"];

const listForm = z.object({
  object: z.literal("list"),
  data: z.array(z.object({
    object: z.literal("embedding"),
    index: z.number().int().min(0),
    embedding: z.union([z.array(z.number()), z.string()]),
  })),
  model: z.string().min(1),
});

const usageForm = z.object({ prompt_tokens: z.number().int().min(1), total_tokens: z.number().int().min(1) });

const FORM: ModelPart = { part: "embeddings", model: "embedding", members: { input: TEXTS } };

/** Requests the vectors of the test inputs, in order. @param members further members of the body */
async function requestVectors(context: SuiteContext, members: JsonObject = {}): Promise<(number[] | string)[]> {
  const { data } = shaped(listForm, objectOf((await answerOf(FORM, context, members)).text, "the answer"));
  const indices = data.map(({ index }) => index);
  expectThat(indices.every((index, at) => index === at), "indices from 0 in order", indices);
  return data.map(({ embedding }) => embedding);
}

async function requestNumbers(context: SuiteContext): Promise<number[][]> {
  const vectors = await requestVectors(context);
  expectThat(vectors.every(Array.isArray), "arrays of numbers where no format is named", vectors[0]);
  return vectors as number[][];
}

function dot(first: readonly number[] = [], second: readonly number[] = []): number {
  return first.reduce((sum, value, at) => sum + value * (second[at] ?? 0), 0);
}

function readFloats(base64: string): number[] {
  try {
    return Array.from(new Float32Array(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)).buffer));
  } catch {
    throw new Mismatch("floats in base64", show(base64));
  }
}

/** Checks of embeddings. */
export const EMBEDDINGS: Checks = {
  async whole(context) {
    const vectors = await requestNumbers(context);
    expectThat(vectors.length === TEXTS.length, `${TEXTS.length} vectors`, vectors.length);
    const lengths = new Set(vectors.map(({ length }) => length));
    expectThat(lengths.size === 1, "vectors of one length", [...lengths]);
  },
  async similar(context) {
    const [first, similar, different] = await requestNumbers(context);
    const [high, low] = [dot(first, similar), dot(first, different)];
    expectThat(high > low, "the same words to be closer than others", [high, low]);
  },
  async base64(context) {
    const [expected] = await requestNumbers(context);
    const [seen] = await requestVectors(context, { encoding_format: "base64" });
    expectThat(typeof seen === "string", "base64", seen);
    const numbers = readFloats(seen);
    expectThat(numbers.length === expected?.length, `${expected?.length} floats`, numbers.length);
    const cosine = dot(numbers, expected) / Math.sqrt(dot(numbers, numbers) * dot(expected, expected));
    expectThat(cosine > 0.999, "the vector that comes as numbers", numbers.slice(0, 4));
  },
  async tokens(context) {
    const body = bodyOf(FORM, context, { input: [[1, 2, 3], [4]] });
    const answer = await context.ask({ path: context.path("embeddings"), body });
    if (answer.status === 400) throw new Skip("the model does not accept token inputs: 400");
    const { data } = shaped(listForm, objectOf(answer.text, "the answer"));
    expectThat(data.length === 2, "2 vectors", data.length);
  },
  async usage(context) {
    const { usage } = objectOf((await answerOf(FORM, context)).text, "the answer");
    const { prompt_tokens, total_tokens } = shaped(usageForm, usage, "usage");
    expectThat(prompt_tokens === total_tokens, "total = prompt", usage);
  },
  request_id: async (context) => checkHeader(await answerOf(FORM, context), "x-request-id", /^\S+$/),
  ...refusalChecks(FORM, {
    "error.empty": [() => ({ input: [] }), [400]],
    "error.language": [({ subject }) => ({ model: subject.model }), [400, 404]],
  }),
};

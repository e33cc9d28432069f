/** Checks of reranking, in the format shared by Cohere, Jina and vLLM. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { type Checks, expectThat, shaped } from "./check.ts";
import { answerOf, type ModelPart, refusalChecks } from "./model_part.ts";
import { objectOf } from "./sse.ts";
import type { SuiteContext } from "./suite_context.ts";

/** Test documents. The second one matches the query. */
const DOCUMENTS = ["Quarterly tax returns", "A red apple on a table", "How to descale a kettle"];

const resultsForm = z.object({
  results: z.array(z.object({ index: z.number().int().min(0), relevance_score: z.number() })),
});

const FORM: ModelPart = {
  part: "rerank",
  model: "rerank",
  members: { query: "red apple", documents: DOCUMENTS },
};

async function requestResults(context: SuiteContext, members: JsonObject = {}) {
  return shaped(resultsForm, objectOf((await answerOf(FORM, context, members)).text, "the answer")).results;
}

/** Checks of reranking. */
export const RERANK: Checks = {
  async whole(context) {
    const indices = (await requestResults(context)).map(({ index }) => index);
    const isComplete = indices.length === DOCUMENTS.length && new Set(indices).size === DOCUMENTS.length;
    expectThat(
      isComplete && indices.every((index) => index < DOCUMENTS.length),
      "each document once, by its index",
      indices,
    );
  },
  async order(context) {
    const results = await requestResults(context);
    const scores = results.map(({ relevance_score }) => relevance_score);
    expectThat(scores.every((score, at) => at === 0 || score <= (scores[at - 1] ?? score)), "the best first", scores);
    expectThat(results[0]?.index === 1, "the document with the words of the query first", results);
  },
  async top_n(context) {
    const results = await requestResults(context, { top_n: 1 });
    expectThat(results.length === 1, "1 result", results.length);
  },
  ...refusalChecks(FORM),
};

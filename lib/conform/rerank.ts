/** Reranking, in the format shared by Cohere, Jina and vLLM. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { type Checks, expectThat, shaped } from "./check.ts";
import { answerOf, type ModelPart, refusalChecks } from "./model_part.ts";
import { objectOf } from "./sse.ts";
import type { SuiteContext } from "./suite_context.ts";

const DOCUMENTS = ["Quarterly tax returns", "A red apple on a table", "How to descale a kettle"];

const resultsForm = z.object({
  results: z.array(z.object({ index: z.number().int().min(0), relevance_score: z.number() })),
});

const FORM: ModelPart = {
  part: "rerank",
  model: "rerank",
  members: { query: "red apple", documents: DOCUMENTS },
};

async function results(context: SuiteContext, more: JsonObject = {}) {
  return shaped(resultsForm, objectOf((await answerOf(FORM, context, more)).text, "the answer")).results;
}

/** Checks of reranking. */
export const RERANK: Checks = {
  async whole(context) {
    const places = (await results(context)).map(({ index }) => index);
    const isWhole = places.length === DOCUMENTS.length && new Set(places).size === DOCUMENTS.length;
    expectThat(isWhole && places.every((place) => place < DOCUMENTS.length), {
      expected: "each document once, by its index",
      seen: places,
    });
  },
  async order(context) {
    const found = await results(context);
    const scores = found.map(({ relevance_score }) => relevance_score);
    expectThat(scores.every((score, at) => at === 0 || score <= (scores[at - 1] ?? score)), {
      expected: "the best first",
      seen: scores,
    });
    expectThat(found[0]?.index === 1, { expected: "the document with the words of the query first", seen: found });
  },
  async top_n(context) {
    const found = await results(context, { top_n: 1 });
    expectThat(found.length === 1, { expected: "1 result", seen: found.length });
  },
  ...refusalChecks(FORM),
};

import { assert, assertEquals } from "@std/assert";
import { createCohere } from "ai-cohere-4";
import { cosineSimilarity, embed, embedMany, rerank } from "ai-7";
import { createOpenAI } from "ai-openai-4";
import { CohereClient } from "cohere";
import { Document, MetadataMode, Settings, VectorStoreIndex } from "llamaindex";
import { OpenAIEmbedding } from "llamaindex-openai";
import { MemoryVectorStore } from "langchain-classic/vectorstores/memory";
import { OpenAIEmbeddings } from "langchain-openai";
import { testOpenai } from "./sdks.ts";
import { sharedPlainGateway } from "./upstreams.ts";

/** The three texts of a knowledge base, the second of which answers the question. */
const TEXTS = ["Parcels arrive in five days.", "Reset your password in the settings.", "Our office is in Lisbon."];
const QUESTION = "How do I reset my password?";
const ANSWER = TEXTS[1] ?? "";

const MODEL = "sluice/embed";

const gateway = sharedPlainGateway();

function address(): { baseURL: string; apiKey: string } {
  return { baseURL: `${gateway().url}/v1`, apiKey: gateway().key };
}

testOpenai(
  "embeddings: the default base64 decodes to the vector of floats",
  gateway,
  async ({ client }) => {
    const ask = { model: MODEL, input: TEXTS, dimensions: 64 };
    const { data, usage, model } = await client.embeddings.create(ask);
    const floats = await client.embeddings.create({ ...ask, encoding_format: "float" });
    assertEquals(data.map(({ index, embedding }) => [index, embedding.length]), [[0, 64], [1, 64], [2, 64]]);
    assertEquals(data, floats.data.map((item) => ({ ...item, embedding: item.embedding.map(Math.fround) })));
    assertEquals([usage.total_tokens, model], [21, MODEL]);
    const tokens = await client.embeddings.create({ model: MODEL, input: [[1, 2, 3], [4]] });
    assertEquals([tokens.data.length, tokens.usage.prompt_tokens], [2, 4]);
  },
);

testOpenai("embeddings: errors have the class of their status", gateway, async ({ client, Sdk }) => {
  for (const ask of [{ model: MODEL, input: "" }, { model: MODEL, input: "a", dimensions: 8 }]) {
    const error = await client.embeddings.create(ask).then(() => undefined, (error) => error);
    assert(error instanceof Sdk.BadRequestError, String(error));
  }
  const error = await client.embeddings.create({ model: "sluice/none", input: "a" }).catch((error) => error);
  assert(error instanceof Sdk.NotFoundError, String(error));
});

Deno.test("LangChain finds the text that answers a question", async () => {
  const { baseURL, apiKey } = address();
  const embeddings = new OpenAIEmbeddings({ model: MODEL, apiKey, configuration: { baseURL }, dimensions: 256 });
  const store = await MemoryVectorStore.fromTexts(TEXTS, TEXTS.map(() => ({})), embeddings);
  const [found] = await store.similaritySearch(QUESTION, 1);
  assertEquals(found?.pageContent, ANSWER);
});

Deno.test("LlamaIndex finds the text that answers a question", async () => {
  const embedModel = new OpenAIEmbedding({ model: MODEL, ...address() });
  Settings.embedModel = embedModel;
  const vectors = await embedModel.getTextEmbeddings(TEXTS);
  assertEquals(vectors.map(({ length }) => length), [1_536, 1_536, 1_536]);
  const index = await VectorStoreIndex.fromDocuments(TEXTS.map((text) => new Document({ text })));
  const [found] = await index.asRetriever({ similarityTopK: 1 }).retrieve({ query: QUESTION });
  assertEquals(found?.node.getContent(MetadataMode.NONE), ANSWER);
});

Deno.test("the AI SDK finds the text that answers a question, with vectors and by reranking", async () => {
  const model = createOpenAI(address()).embedding(MODEL);
  const { embeddings, usage } = await embedMany({ model, values: TEXTS });
  const { embedding } = await embed({ model, value: QUESTION });
  const scores = embeddings.map((vector) => cosineSimilarity(vector, embedding));
  assertEquals(scores.indexOf(Math.max(...scores)), 1);
  assertEquals(usage.tokens, 21);
  const { ranking } = await rerank({
    model: createCohere(address()).reranking("sluice/rerank"),
    query: QUESTION,
    documents: TEXTS,
    topN: 1,
  });
  assertEquals(ranking.map(({ document }) => document), [ANSWER]);
});

Deno.test("Cohere's SDK reranks", async () => {
  const client = new CohereClient({ token: gateway().key, environment: gateway().url });
  const { results, meta } = await client.rerank({
    model: "sluice/rerank",
    query: QUESTION,
    documents: TEXTS,
    topN: 1,
    returnDocuments: true,
  });
  assertEquals(results.map(({ document }) => document?.text), [ANSWER]);
  assertEquals(meta?.billedUnits?.searchUnits, 1);
});

import { assert, assertEquals, assertRejects } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { readEmbeddingsAnswer } from "../../../lib/upstreams/retrieval/openai.ts";
import { readGeminiBatch } from "../../../lib/upstreams/retrieval/gemini.ts";
import { seeded } from "../../support/random.ts";
import { rounds } from "../../support/skip.ts";

const ANSWERS = [
  '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-1e-3]},' +
  '{"index":1,"embedding" : [1,2]}],"model":"m \\"embedding\\":[9]","usage":{"prompt_tokens":3}}',
  '{"data":[{"embedding":"AACAPwAAAAA=","index":1},{"embedding":"AAAAAAAAgD8=","index":0}]}',
  '{"embeddings":[{"values":[0.5,1]},{"values":[1,0.5]}],"usageMetadata":{"promptTokenCount":4}}',
];

Deno.test("recorded answers are read, even if a text looks like a vector", async () => {
  const wanted = { count: 2, dimensions: 2, base64: false };
  assertEquals(await readEmbeddingsAnswer(ANSWERS[0] ?? "", wanted), { vectors: ["[0.25,-1e-3]", "[1,2]"], tokens: 3 });
  assertEquals(await readEmbeddingsAnswer(ANSWERS[1] ?? "", wanted), { vectors: ["[0,1]", "[1,0]"] });
  assertEquals(await readGeminiBatch(ANSWERS[2] ?? "", wanted), { vectors: ["[0.5,1]", "[1,0.5]"], tokens: 4 });
});

Deno.test("vectors of millions of numbers are refused", async () => {
  for (const vector of [`[${"1,".repeat(4_000_000)}1]`, `"${"AAAA".repeat(10_000_000)}"`]) {
    const answer = `{"data":[{"embedding":${vector},"index":0}]}`;
    const read = readEmbeddingsAnswer(answer, { count: 1, dimensions: 2, base64: false });
    await assertRejects(() => read, GatewayError, "expected vectors of 2 dimensions");
  }
});

Deno.test("an answer with any changed character gives valid JSON vectors or an error", async () => {
  const random = seeded(26);
  const characters = '[]{}",:0123456789.-+eE \\/Aéx\n';
  let refused = 0;
  for (let round = 0; round < rounds(3_000); round++) {
    const text = ANSWERS[round % ANSWERS.length] ?? "";
    const at = random.below(text.length);
    const put = characters.charAt(random.below(characters.length));
    const broken = text.slice(0, at) + (round % 3 === 0 ? "" : put) + text.slice(at + round % 2);
    const base64 = round % 5 === 0;
    const read = round % ANSWERS.length === 2 ? readGeminiBatch : readEmbeddingsAnswer;
    try {
      const { vectors } = await read(broken, { count: 2, dimensions: 2, base64 });
      assertEquals(vectors.length, 2);
      for (const vector of vectors) {
        const value = JSON.parse(vector);
        assert(base64 ? typeof value === "string" : value.length === 2 && value.every(Number.isFinite), broken);
      }
    } catch (error) {
      assert(error instanceof GatewayError && error.kind === "upstream", `${broken}: ${error}`);
      refused++;
    }
  }
  assert(refused > 0);
});

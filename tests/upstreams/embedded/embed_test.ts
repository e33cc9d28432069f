import { assert, assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import type { EmbeddingInput } from "../../../lib/retrieval/types.ts";
import { cosineOf, embedInput } from "../../../lib/upstreams/embedded/retrieval.ts";

function vectorOf(input: EmbeddingInput, dimensions = 1_536): Float64Array {
  return runToEnd(embedInput(input, dimensions));
}

function similarity(first: string, second: string, dimensions?: number): number {
  return cosineOf(vectorOf(first, dimensions), vectorOf(second, dimensions));
}

Deno.test("vectors have unit length and the requested dimensions", () => {
  const inputs = [
    "a",
    "Hello, world!",
    "???",
    "🙂🙂",
    " ",
    "\u0000",
    "你好世界",
    "สวัสดี",
    "é".repeat(5_000),
    [1, 2, 3],
    [0],
  ];
  for (const dimensions of [64, 100, 1_536]) {
    for (const input of inputs) {
      const vector = vectorOf(input, dimensions);
      assertEquals(vector.length, dimensions);
      assert(Math.abs(Math.hypot(...vector) - 1) < 1e-9);
    }
  }
});

Deno.test("equal inputs have equal vectors, regardless of case and character width", () => {
  assertEquals(vectorOf("Straße am Meer"), vectorOf("Straße am Meer"));
  assertEquals(vectorOf("HELLO"), vectorOf("hello"));
  assertEquals(vectorOf("ＨＥＬＬＯ"), vectorOf("hello"));
});

Deno.test("the vectors of known texts never change, so stored vectors stay comparable", () => {
  const found = Array.from(vectorOf("hello world", 64)).flatMap((value, at) => Math.abs(value) > 0.28 ? [at] : []);
  assertEquals(found, [6, 15, 29, 42, 58]);
});

Deno.test("similar texts are closer than different ones", () => {
  const triples: [text: string, similar: string, different: string][] = [
    ["How do I reset my password?", "Resetting a forgotten password", "Parcels are delivered within five days"],
    ["opening hours of the museum", "The museum opens at nine", "A recipe for lentil soup"],
    ["Die Rechnung ist überfällig", "überfällige Rechnungen mahnen", "Das Wetter wird morgen schön"],
    ["我想重置密码", "如何重置我的密码", "今天天气很好"],
    ["配送はいつ届きますか", "配送が届くまでの日数", "パスワードを忘れました"],
  ];
  for (const dimensions of [64, 256, 1_536]) {
    for (const [text, similar, different] of triples) {
      const near = similarity(text, similar, dimensions);
      const far = similarity(text, different, dimensions);
      assert(near > far, `${dimensions}: "${text}" ${near} ${far}`);
    }
  }
});

Deno.test("unrelated texts are nearly orthogonal", () => {
  assert(Math.abs(similarity("lentil soup recipe", "museum opening hours")) < 0.15);
});

import { assert, assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { dimensionsOf, inFormat, isVector, toBase64 } from "../../lib/retrieval/vectors.ts";

Deno.test("isVector() accepts only JSON arrays of numbers and base64", () => {
  const good = ["[1]", "[ -0.5 , 1e-7,\n2E+3 ]", "[0,10]", '"AAAA"', '"AAAAAA=="', '"+/09"'];
  const bad = ["[]", "[1,]", "[,1]", "[1 2]", "[01]", "[.5]", "[1.]", "[+1]", "[NaN]", "[null]", "[[1]]", '["1"]', "1"];
  const badSpace = ["[1,\u00a02]", "[\ufeff1]", "[1\v]"];
  const badBase64 = ['""', '"A"', '"AA"', '"AA=A"', '"===="', '"AA AA"', '"AA-_"', '"AAAA', "AAAA"];
  for (const text of good) assert(isVector(text), text);
  for (const text of [...bad, ...badSpace, ...badBase64]) assert(!isVector(text), text);
});

Deno.test("inFormat() keeps a vector in its format, and converts others without loss", () => {
  for (const text of ["[0.10000000000000000001, 1]", '"AACAPwAAAAA="']) {
    assertEquals(inFormat(text, text.startsWith('"')), text);
  }
  for (const length of [1, 2, 3, 64, 1_536]) {
    const numbers = Array.from({ length }, (_, index) => Math.fround(Math.sin(index + length) * 10 ** (index % 7 - 3)));
    const base64 = inFormat(JSON.stringify(numbers), true);
    assert(isVector(base64));
    assertEquals(base64, toBase64(numbers));
    assertEquals(JSON.parse(inFormat(base64, false)), numbers);
    assertEquals([dimensionsOf(base64), dimensionsOf(JSON.stringify(numbers))], [length, length]);
  }
});

Deno.test("inFormat() rejects base64 of values that JSON cannot express", () => {
  for (const value of [NaN, Infinity, -Infinity]) {
    assertThrows(() => inFormat(toBase64([1, value]), false), GatewayError, "not a number");
  }
});

import { assertEquals, assertLess, assertStrictEquals } from "@std/assert";
import { withoutRepeatedResults } from "../../../lib/protocols/gemini/mod.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";

const call = (id: string): JsonObject => ({ functionCall: { id, name: "clock", args: {} } });
const result = (id: string | undefined, text: string): JsonObject => ({
  functionResponse: { ...(id !== undefined && { id }), name: "clock", response: { result: text } },
});
const user = (...parts: JsonObject[]): JsonObject => ({ role: "user", parts });
const model = (...parts: JsonObject[]): JsonObject => ({ role: "model", parts });

Deno.test("withoutRepeatedResults() drops the second copy of a result, in the same content and in the next one", () => {
  const [one, two] = [result("a", "Noon"), result("b", "Noon")];
  const calls = model(call("a"), call("b"));
  const wanted = { contents: [user({ text: "Both" }), calls, user(one, two), user({ text: "Thanks" })] };
  for (
    const answers of [[user(one, one, two, two)], [user(one, two), user(one, two)], [user(one, two, one), user(two)]]
  ) {
    const body = { contents: [user({ text: "Both" }), calls, ...answers, user({ text: "Thanks" })] };
    assertEquals(withoutRepeatedResults(body), wanted);
  }
});

Deno.test("withoutRepeatedResults() keeps results of other turns, other results of a call, and results without ids", () => {
  for (
    const contents of [
      [model(call("a")), user(result("a", "Noon")), model(call("a")), user(result("a", "Noon"))],
      [model(call("a")), user(result("a", "Noon"), result("a", "Night"))],
      [
        model(call("")),
        user(result(undefined, "Noon"), result(undefined, "Noon"), result("", "Noon"), result("", "Noon")),
      ],
      [user({ text: "Again" }, { text: "Again" }), "text", { role: "user" }, user()],
    ]
  ) {
    const body = { contents };
    assertStrictEquals(withoutRepeatedResults(body), body);
  }
});

Deno.test("withoutRepeatedResults() compares a result with the first one of its id alone", () => {
  let reads = 0;
  const odd = (at: number) => {
    const response = {};
    Object.defineProperty(response, "result", { get: () => (reads++, at), enumerable: true });
    return { functionResponse: { id: "a", name: "clock", response } };
  };
  const body = { contents: [model(call("a")), user(...Array.from({ length: 500 }, (_, at) => odd(at)))] };
  assertStrictEquals(withoutRepeatedResults(body), body);
  assertLess(reads, 2_000);
});

import { assert, assertEquals } from "@std/assert";
import { CallMatcher } from "../../../lib/protocols/gemini/match_calls.ts";
import { workedMs } from "../../support/turns.ts";

Deno.test("CallMatcher finds the call of a result by its id, else by its name in the order of the calls", () => {
  const calls = new CallMatcher();
  calls.beginTurn();
  assertEquals(
    [calls.begin("f", undefined), calls.begin("g", "own"), calls.begin("f", undefined), calls.begin("f", "own")],
    ["call_1", "own", "call_3", "own"],
  );
  assertEquals(calls.end("f", "call_3"), "call_3");
  assertEquals(calls.end("f", undefined), "call_1");
  // A repeated id belongs to the first call that has it and is open.
  assertEquals([calls.end("f", "own"), calls.end("f", undefined)], ["own", "own"]);
  assertEquals([calls.end("f", undefined), calls.end("f", "other")], ["", "other"]);
  calls.begin("f", undefined);
  calls.beginTurn();
  assertEquals(calls.end("f", undefined), "");
});

Deno.test("CallMatcher takes linear time for tens of thousands of calls, and of results without a call", () => {
  const calls = new CallMatcher();
  calls.beginTurn();
  for (let index = 0; index < 40_000; index++) calls.begin(`f${index}`, undefined);
  for (let index = 0; index < 80_000; index++) calls.begin("same", undefined);
  const start = workedMs();
  for (let index = 0; index < 40_000; index++) assertEquals(calls.end(`g${index}`, undefined), "");
  for (let index = 40_000; index-- > 0;) assertEquals(calls.end(`f${index}`, undefined), `call_${index + 1}`);
  for (let index = 0; index < 80_000; index++) assertEquals(calls.end("same", undefined), `call_${index + 40_001}`);
  assert(workedMs() - start < 5_000);
});

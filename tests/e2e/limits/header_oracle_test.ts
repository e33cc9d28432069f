import { assert } from "@std/assert";
import { compareHeaders } from "./header_oracle.ts";

Deno.test("what answers and refusals tell of limits is what a list of all requests says, in both dialects", async () => {
  const { answers, refusals } = await compareHeaders({ requests: 1_000, seed: 1 });
  assert(answers > 300 && refusals > 100, `${answers} answers, ${refusals} refusals`);
});

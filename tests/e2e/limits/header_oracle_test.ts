import { assert } from "@std/assert";
import { compareHeaders } from "./header_oracle.ts";

Deno.test("limit headers and refusals agree with a log of all requests, for both vendors' clients", async () => {
  const { answers, refusals } = await compareHeaders({ requests: 1_000, seed: 1 });
  assert(answers > 300 && refusals > 100, `${answers} answers, ${refusals} refusals`);
});

import { assert } from "@std/assert";
import { compareHeaders } from "./header_oracle.ts";
import { QUICK } from "../../support/skip.ts";

Deno.test("limit headers and refusals agree with a log of all requests, for both vendors' clients", async () => {
  const { answers, refusals } = await compareHeaders({ requests: QUICK ? 100 : 1_000, seed: 1 });
  assert(answers > (QUICK ? 30 : 300) && refusals > (QUICK ? 10 : 100), `${answers} answers, ${refusals} refusals`);
});

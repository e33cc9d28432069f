import { assert } from "@std/assert";
import { compareHeaders } from "./header_oracle.ts";
import { rounds } from "../../support/skip.ts";

Deno.test("limit headers and refusals agree with a log of all requests, for both vendors' clients", async () => {
  const requests = rounds(1_500);
  const { answers, refusals } = await compareHeaders({ requests, seed: 1 });
  assert(answers > requests * 0.3 && refusals > requests * 0.1, `${answers} answers, ${refusals} refusals`);
});

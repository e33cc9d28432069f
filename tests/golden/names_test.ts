import { assertEquals } from "@std/assert";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { UPSTREAMS } from "./crossings.ts";
import { crossRequest, REQUESTS } from "./requests.ts";

const SIDES = [...UPSTREAMS, "openrouter", "deepseek", "mistral"];

/** Collects the names of members, and the types, of a body. */
function wordsOf(value: Json | undefined, words = new Set<string>()): Set<string> {
  if (typeof value !== "object" || value === null) return words;
  for (const [name, inner] of Object.entries(value)) {
    words.add(name);
    if (name === "type" && typeof inner === "string") words.add(inner);
    wordsOf(inner as Json, words);
  }
  return words;
}

function namesOf(from: Protocol, to: string, body: JsonObject): readonly string[] {
  try {
    return crossRequest(from, to, body).dropped;
  } catch (error) {
    if (error instanceof GatewayError) return [];
    throw error;
  }
}

Deno.test("dropped parameters have the names of the client's own body", () => {
  const strange = new Set<string>();
  for (const { name: request, from, bodies } of REQUESTS) {
    for (const [variant, body] of Object.entries(bodies)) {
      const words = wordsOf(body);
      for (const to of SIDES) {
        for (const name of namesOf(from, to, body)) {
          // A prefill is not a member, but it has a name of its own.
          const isOwn = name === "prefill" || words.has(name) || name.split(".").every((word) => words.has(word));
          if (!isOwn) strange.add(`${request} ${variant} ${from}-${to}: ${name}`);
        }
      }
    }
  }
  assertEquals([...strange], []);
});

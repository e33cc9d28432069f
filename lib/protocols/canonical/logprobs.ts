/** Log probabilities of an answer's tokens, which chat and responses have in the same form. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectsOf } from "../members.ts";
import type { TokenLogprob } from "./types.ts";

/** Reads a list of tokens. `bytes` and `top_logprobs` are added where they are absent: clients require them. */
export function readLogprobs(tokens: Json | undefined): TokenLogprob[] {
  return objectsOf(tokens).map((token) => ({
    ...withBytes(token),
    top_logprobs: objectsOf(token.top_logprobs).map(withBytes),
  }));
}

/** Adds tokens to a list. A whole answer can have more of them than a call of `push()` accepts. */
export function addTokens(list: TokenLogprob[], tokens: readonly TokenLogprob[]): void {
  for (const token of tokens) list.push(token);
}

function withBytes(token: JsonObject): JsonObject {
  return { ...token, bytes: token.bytes ?? null };
}

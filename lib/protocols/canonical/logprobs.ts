/** Log probabilities of an answer's tokens, which chat and responses have in the same form. */
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { TokenLogprob } from "./types.ts";

/** Reads a list of tokens. `bytes` and `top_logprobs` are added where they are absent: clients require them. */
export function readLogprobs(tokens: Json | undefined): TokenLogprob[] {
  return objectsIn(tokens).map((token) => ({
    ...withBytes(token),
    top_logprobs: objectsIn(token.top_logprobs).map(withBytes),
  }));
}

/** Adds tokens to a list. A whole answer can have more of them than a call of `push()` accepts. */
export function addTokens(list: TokenLogprob[], tokens: readonly TokenLogprob[]): void {
  for (const token of tokens) list.push(token);
}

function objectsIn(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function withBytes(token: JsonObject): JsonObject {
  return { ...token, bytes: token.bytes ?? null };
}

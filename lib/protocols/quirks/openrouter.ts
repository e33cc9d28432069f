/** The quirks of OpenRouter. */
import type { Prompt, Reasoning } from "../canonical/types.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import { someOf } from "../members.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import { omit, type Quirk } from "./quirk.ts";

/**
 * OpenRouter accepts signed reasoning, prompt-cache marks and unfinished answers, and has its own `reasoning` object.
 */
export const openrouter: Quirk = {
  dialect: { ...compatible.dialect, reasoningDetails: true, cacheMarks: true, prefill: true },
  mayKnowOpenRouter: true,
  issuer: openrouterIssuer,
  body(body, prompt, dropped) {
    const provider = passProvider(prompt);
    const reworded = writeReasoning(compatibleBody(body, dropped), prompt.reasoning);
    return provider === undefined ? reworded : { ...reworded, provider };
  },
};

/** Issuers of signatures, by the author of the model, which is the first part of the model's id. */
const ISSUERS: ReadonlyMap<string, string> = new Map([
  ["anthropic", "anthropic"],
  ["openai", "openai"],
  ["google", "google-gemini-v1"],
  ["x-ai", "xai-responses-v1"],
  ["meta-llama", "meta-responses-v1"],
]);

/** Returns the issuer whose signatures a model reads: the model's own vendor. */
export function openrouterIssuer(model: string): string {
  const author = model.split("/")[0] ?? "";
  return ISSUERS.get(author) ?? author;
}

/** Writes the `reasoning` object in place of an effort. A `reasoning` object of the client stays. */
function writeReasoning(body: JsonObject, reasoning: Reasoning | undefined): JsonObject {
  if (reasoning === undefined || isObject(body.reasoning)) return body;
  const reasoningObject = reasoningOf(reasoning, body);
  const others = omit(body, ["reasoning_effort"]);
  return Object.keys(reasoningObject).length > 0 ? { ...others, reasoning: reasoningObject } : others;
}

/** Returns the `reasoning` object. It has the budget if there is one: OpenRouter accepts only a budget or an effort. */
function reasoningOf({ mode, budgetTokens, display }: Reasoning, body: JsonObject): JsonObject {
  const exclude = display === "omitted" && { exclude: true };
  if (mode === "off") return { enabled: false };
  if (budgetTokens !== undefined) return { max_tokens: budgetTokens, ...exclude };
  if (body.reasoning_effort !== undefined) return { effort: body.reasoning_effort, ...exclude };
  return { ...(mode === "adaptive" && { enabled: true }), ...exclude };
}

/**
 * Preferences that OpenRouter can apply, too. Those with names of providers are not passed on: they mean upstreams of
 * the gateway.
 */
const PASSED_PREFERENCES = [
  "require_parameters",
  "data_collection",
  "zdr",
  "enforce_distillable_text",
  "quantizations",
  "max_price",
] as const;

function passProvider({ provider = {} }: Prompt): JsonObject | undefined {
  return someOf(Object.fromEntries(PASSED_PREFERENCES.map((name) => [name, provider[name] ?? undefined])));
}

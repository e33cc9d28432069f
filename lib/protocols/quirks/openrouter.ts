import type { Prompt, Reasoning } from "../canonical/types.ts";
import { isObject, type JsonObject } from "../../json/mod.ts";
import { compatible, compatibleBody } from "./compatible.ts";
import { omit, type Quirk } from "./quirk.ts";

/**
 * OpenRouter accepts signed reasoning, prompt-cache marks and unfinished answers, and has a `reasoning` object of its
 * own.
 */
export const openrouter: Quirk = {
  dialect: { ...compatible.dialect, reasoningDetails: true, cacheMarks: true, prefill: true },
  issuer: openrouterIssuer,
  body(body, prompt, dropped) {
    const provider = passProvider(prompt);
    const reworded = writeReasoning(compatibleBody(body, dropped), prompt.reasoning);
    return Object.keys(provider).length > 0 ? { ...reworded, provider } : reworded;
  },
};

/** Issuers of signatures by the author of a model, which is the first part of its id. */
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

/** Keeps a budget as a budget, which excludes an effort. An object that the client wrote itself stays. */
function writeReasoning(body: JsonObject, reasoning: Reasoning | undefined): JsonObject {
  if (reasoning === undefined || isObject(body.reasoning)) return body;
  const options = reasoningOf(reasoning, body);
  const others = omit(body, ["reasoning_effort"]);
  return Object.keys(options).length > 0 ? { ...others, reasoning: options } : others;
}

function reasoningOf({ mode, budgetTokens, display }: Reasoning, body: JsonObject): JsonObject {
  const hide = display === "omitted" && { exclude: true };
  if (mode === "off") return { enabled: false };
  if (budgetTokens !== undefined) return { max_tokens: budgetTokens, ...hide };
  if (body.reasoning_effort !== undefined) return { effort: body.reasoning_effort, ...hide };
  return { ...(mode === "adaptive" && { enabled: true }), ...hide };
}

/**
 * Preferences that OpenRouter can apply as well. Names of providers are the gateway's own upstreams, so they stay here.
 */
const PASSED = [
  "require_parameters",
  "data_collection",
  "zdr",
  "enforce_distillable_text",
  "quantizations",
  "max_price",
] as const;

function passProvider({ provider }: Prompt): JsonObject {
  if (provider === undefined) return {};
  return Object.fromEntries(
    PASSED.flatMap((name) => provider[name] === undefined || provider[name] === null ? [] : [[name, provider[name]]]),
  );
}

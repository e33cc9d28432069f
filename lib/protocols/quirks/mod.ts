/** Quirks of vendors in the chat protocol, by vendor. */
import type { VendorName } from "../../upstreams/vendors.ts";
import { compatible } from "./compatible.ts";
import { deepseek } from "./deepseek.ts";
import { glm } from "./glm.ts";
import { groq } from "./groq.ts";
import { kimi } from "./kimi.ts";
import type { Quirk } from "./quirk.ts";
import { mistral } from "./mistral.ts";
import { openrouter } from "./openrouter.ts";
import { qwen } from "./qwen.ts";
import { vllm } from "./vllm.ts";
import { xai } from "./xai.ts";

/** For vendors that follow their protocol exactly. */
const NO_QUIRKS: Quirk = {};

/**
 * The quirks of each vendor in lib/upstreams/vendors.ts. `compatible` is for servers that follow OpenAI's older chat
 * API. A vendor with other differences gets a file; examples are xai.ts (a renamed member) and mistral.ts (refused
 * members).
 */
export const QUIRKS: Readonly<Record<VendorName, Quirk>> = {
  openai: NO_QUIRKS,
  anthropic: NO_QUIRKS,
  gemini: NO_QUIRKS,
  azure: NO_QUIRKS,
  deepseek,
  glm,
  groq,
  kimi,
  mistral,
  xai,
  qwen,
  openrouter,
  vllm,
  ollama: compatible,
  "openai-compatible": compatible,
};

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
const NONE: Quirk = {};

/**
 * One entry per vendor of lib/upstreams/vendors.ts. A new OpenAI-compatible vendor starts with `compatible`; one that
 * differs gets a file of its own, after the pattern of xai.ts (a renamed member) or mistral.ts (refused members).
 */
export const QUIRKS: Readonly<Record<VendorName, Quirk>> = {
  openai: NONE,
  anthropic: NONE,
  gemini: NONE,
  azure: NONE,
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

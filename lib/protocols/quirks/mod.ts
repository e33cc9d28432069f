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
 * One entry per vendor of lib/upstreams/vendors.ts. `compatible` is for servers that follow OpenAI's older chat API; a
 * vendor with other differences gets a file, after the pattern of xai.ts (a renamed member) or mistral.ts (refused ones).
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

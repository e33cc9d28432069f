/** Mends by vendor. */
import type { VendorName } from "../../upstreams/vendors.ts";
import { azure } from "./azure.ts";
import { compatible } from "./compatible.ts";
import { deepseek } from "./deepseek.ts";
import { glm } from "./glm.ts";
import { groq } from "./groq.ts";
import { kimi } from "./kimi.ts";
import type { Quirk } from "./quirk.ts";
import { mistral } from "./mistral.ts";
import { ollama } from "./ollama.ts";
import { openai } from "./openai.ts";
import { openrouter } from "./openrouter.ts";
import { qwen } from "./qwen.ts";
import { vllm } from "./vllm.ts";
import { xai } from "./xai.ts";

/** Vendors that speak their protocol as its own folder does. */
const NONE: Quirk = {};

/** What each vendor says differently. */
export const QUIRKS: Readonly<Record<VendorName, Quirk>> = {
  openai,
  anthropic: NONE,
  gemini: NONE,
  azure,
  deepseek,
  glm,
  groq,
  kimi,
  mistral,
  xai,
  qwen,
  openrouter,
  vllm,
  ollama,
  "openai-compatible": compatible,
};

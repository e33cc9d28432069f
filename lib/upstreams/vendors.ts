/** The vendors, one entry each. A host with OpenAI's protocol needs no entry: it can use `openai-compatible`. */
import type { Protocol } from "../protocols/canonical/types.ts";

/** Constant facts about a vendor. */
export interface Vendor {
  /** Issuer of reasoning signatures; absent: the configured upstream itself. */
  issuer?: string;
  /** Default base URL; absent if it must be configured. */
  baseUrl?: string;
  /** True if no key is needed. */
  keyless?: boolean;
  /** Supported protocols, the preferred one first. */
  protocols: readonly [Protocol, ...Protocol[]];
  /** Protocols that only some hosts or versions support. They are used if configured. */
  optionalProtocols?: readonly Protocol[];
  /** True if output limits below the dialect's `minTokens` are refused; absent if that is not known. */
  enforcesMinTokens?: boolean;
  /** Returns the request headers: the key, and others that the vendor needs. Not called without a key. */
  auth: (key: string) => Record<string, string>;
  /** True if it has OpenAI's images API. */
  images?: boolean;
  /**
   * Maximum number of inputs of one embeddings request, usually OpenAI's number; absent if it has no embeddings API.
   */
  embeddings?: number;
  /** True if it has the rerank API that Cohere, Jina and vLLM share. */
  rerank?: boolean;
  /** True if its responses API supports `compaction_trigger` items. */
  compacts?: boolean;
  /** Paths that differ from the defaults. */
  paths?: Partial<Record<Protocol, string>>;
}

const bearer: Vendor["auth"] = (key) => ({ authorization: `Bearer ${key}` });

/** Vendors by their name in the configuration. `docs/explanation/architecture.md` has the steps to add one. */
export const VENDORS = {
  openai: {
    issuer: "openai",
    baseUrl: "https://api.openai.com/v1",
    protocols: ["responses", "chat"],
    enforcesMinTokens: true,
    compacts: true,
    auth: bearer,
    images: true,
    embeddings: 2_048,
  },
  anthropic: {
    issuer: "anthropic",
    baseUrl: "https://api.anthropic.com",
    protocols: ["messages"],
    auth: (key) => ({ "x-api-key": key }),
    paths: { messages: "/v1/messages" },
  },
  gemini: {
    issuer: "google",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    protocols: ["gemini"],
    auth: (key) => ({ "x-goog-api-key": key }),
    // "at most 100 requests can be in one batch" (https://github.com/geldata/gel/issues/9032)
    embeddings: 100,
  },
  // The resource's own v1 address, such as https://NAME.openai.azure.com/openai/v1; a model is a deployment's name.
  azure: {
    issuer: "openai",
    protocols: ["responses", "chat"],
    enforcesMinTokens: true,
    auth: (key) => ({ "api-key": key }),
    images: true,
    embeddings: 2_048,
  },
  deepseek: { baseUrl: "https://api.deepseek.com/v1", protocols: ["chat"], auth: bearer },
  glm: { baseUrl: "https://api.z.ai/api/paas/v4", protocols: ["chat"], auth: bearer, embeddings: 64 },
  groq: { baseUrl: "https://api.groq.com/openai/v1", protocols: ["chat"], auth: bearer },
  kimi: { baseUrl: "https://api.moonshot.ai/v1", protocols: ["chat"], auth: bearer },
  mistral: { baseUrl: "https://api.mistral.ai/v1", protocols: ["chat"], auth: bearer, embeddings: 512 },
  xai: { baseUrl: "https://api.x.ai/v1", protocols: ["chat"], auth: bearer },
  qwen: {
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    protocols: ["chat"],
    auth: bearer,
    embeddings: 10,
  },
  openrouter: { baseUrl: "https://openrouter.ai/api/v1", protocols: ["chat"], auth: bearer, embeddings: 2_048 },
  vllm: {
    protocols: ["chat"],
    optionalProtocols: ["responses"],
    keyless: true,
    auth: bearer,
    embeddings: 2_048,
    rerank: true,
  },
  ollama: {
    baseUrl: "http://127.0.0.1:11434/v1",
    protocols: ["chat"],
    optionalProtocols: ["responses"],
    keyless: true,
    auth: bearer,
    embeddings: 2_048,
  },
  "openai-compatible": {
    protocols: ["chat"],
    optionalProtocols: ["responses"],
    keyless: true,
    auth: bearer,
    images: true,
    embeddings: 2_048,
    rerank: true,
  },
} as const satisfies Record<string, Vendor>;

/** Name of a vendor that is reached over the network. */
export type VendorName = keyof typeof VENDORS;

/** Returns whether a value is the name of a vendor. */
export function isVendorName(name: unknown): name is VendorName {
  return typeof name === "string" && Object.hasOwn(VENDORS, name);
}

/** Returns a vendor by name. */
export function vendorOf(name: VendorName): Vendor {
  return VENDORS[name];
}

/** Returns the base URL of a configured upstream, or else the vendor's, without a slash at the end. */
export function baseUrlOf({ vendor, base_url }: { vendor: VendorName; base_url?: string | undefined }): string {
  return (base_url ?? vendorOf(vendor).baseUrl ?? "").replace(/\/+$/, "");
}

/** Returns the path of a vendor's default address; `/v1` without one. */
export function usualPath(name: VendorName): string {
  const { baseUrl } = vendorOf(name);
  return baseUrl === undefined ? "/v1" : new URL(baseUrl).pathname;
}

/** Returns all protocols that may be configured for a vendor. */
export function protocolsOf({ protocols, optionalProtocols = [] }: Vendor): readonly Protocol[] {
  return [...protocols, ...optionalProtocols];
}

const PATHS: Readonly<Record<Exclude<Protocol, "gemini">, string>> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
};

/**
 * Returns the URL of a request. Gemini's URL contains the model and the streaming mode.
 * @param request `baseUrl`: without a slash at the end
 */
export function addressOf(
  { vendor, baseUrl, protocol, model, stream }: {
    vendor: Vendor;
    baseUrl: string;
    protocol: Protocol;
    model: string;
    stream: boolean;
  },
): string {
  if (protocol !== "gemini") return baseUrl + (vendor.paths?.[protocol] ?? PATHS[protocol]);
  return `${baseUrl}${geminiPath(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
}

function geminiPath(model: string): string {
  return `/models/${model.split("/").map(encodeURIComponent).join("/")}`;
}

/** Returns the URL of image generations or edits. */
export function imageAddressOf(baseUrl: string, kind: "generation" | "edit"): string {
  return `${baseUrl}/images/${kind === "edit" ? "edits" : "generations"}`;
}

/** Returns the URL of embeddings, or of Gemini's batches of them, or of reranking. */
export function retrievalAddressOf(
  baseUrl: string,
  { kind, geminiModel }: { kind: "embeddings" | "rerank"; geminiModel?: string | undefined },
): string {
  if (geminiModel === undefined) return `${baseUrl}/${kind}`;
  return `${baseUrl}${geminiPath(geminiModel)}:batchEmbedContents`;
}

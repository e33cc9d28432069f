/** Vendors: one small value each. A host that speaks OpenAI's protocol needs none: it is `openai-compatible`. */
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";

/** Facts about a vendor that no request changes. */
export interface Vendor {
  /** Who can read the signatures of its answers; absent: the upstream itself, by its name in the configuration. */
  issuer?: string;
  /** Where it lives; absent: the configuration must say. */
  baseUrl?: string;
  /** Whether it answers without a key. */
  keyless?: boolean;
  /** The protocols it speaks, the preferred one first. */
  protocols: readonly [UpstreamProtocol, ...UpstreamProtocol[]];
  /** Protocols that only some hosts or versions speak: used where the configuration says so. */
  perhaps?: readonly UpstreamProtocol[];
  /** Whether it refuses limits below the `leastTokens` of a protocol's dialect. Absent: that is not known. */
  hasLeastTokens?: boolean;
  /** Headers that carry the key. */
  auth: (key: string) => Record<string, string>;
  /** Whether it makes pictures, asked for as OpenAI's are. */
  images?: boolean;
  /** Paths that differ from the usual ones. */
  paths?: Partial<Record<UpstreamProtocol, string>>;
}

const bearer: Vendor["auth"] = (key) => ({ authorization: `Bearer ${key}` });

/** Vendors by the name the configuration gives them. */
export const VENDORS = {
  openai: {
    issuer: "openai",
    baseUrl: "https://api.openai.com/v1",
    protocols: ["responses", "chat"],
    hasLeastTokens: true,
    auth: bearer,
    images: true,
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
  },
  // The resource's own v1 address, such as https://NAME.openai.azure.com/openai/v1; a model is a deployment's name.
  azure: {
    issuer: "openai",
    protocols: ["responses", "chat"],
    hasLeastTokens: true,
    auth: (key) => ({ "api-key": key }),
    images: true,
  },
  deepseek: { baseUrl: "https://api.deepseek.com/v1", protocols: ["chat"], auth: bearer },
  glm: { baseUrl: "https://api.z.ai/api/paas/v4", protocols: ["chat"], auth: bearer },
  groq: { baseUrl: "https://api.groq.com/openai/v1", protocols: ["chat"], auth: bearer },
  kimi: { baseUrl: "https://api.moonshot.ai/v1", protocols: ["chat"], auth: bearer },
  mistral: { baseUrl: "https://api.mistral.ai/v1", protocols: ["chat"], auth: bearer },
  xai: { baseUrl: "https://api.x.ai/v1", protocols: ["chat"], auth: bearer },
  qwen: { baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", protocols: ["chat"], auth: bearer },
  openrouter: { baseUrl: "https://openrouter.ai/api/v1", protocols: ["chat"], auth: bearer },
  vllm: { protocols: ["chat"], perhaps: ["responses"], keyless: true, auth: bearer },
  ollama: {
    baseUrl: "http://127.0.0.1:11434/v1",
    protocols: ["chat"],
    perhaps: ["responses"],
    keyless: true,
    auth: bearer,
  },
  "openai-compatible": { protocols: ["chat"], perhaps: ["responses"], keyless: true, auth: bearer, images: true },
} as const satisfies Record<string, Vendor>;

/** A vendor that is reached over the network. */
export type VendorName = keyof typeof VENDORS;

/** The vendor of this name. */
export function vendorOf(name: VendorName): Vendor {
  return VENDORS[name];
}

/** Every protocol that the configuration may name for a vendor. */
export function spokenBy({ protocols, perhaps = [] }: Vendor): readonly UpstreamProtocol[] {
  return [...protocols, ...perhaps];
}

const PATHS: Readonly<Record<UpstreamProtocol, string>> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
  gemini: "/models/",
};

/** Where a request goes. Gemini's address names the model and whether the answer is streamed. */
export function addressOf(
  { vendor, baseUrl, protocol, model, stream }: {
    vendor: Vendor;
    baseUrl: string;
    protocol: UpstreamProtocol;
    model: string;
    stream: boolean;
  },
): string {
  const path = vendor.paths?.[protocol] ?? PATHS[protocol];
  const base = withoutSlash(baseUrl);
  if (protocol !== "gemini") return base + path;
  const name = model.split("/").map(encodeURIComponent).join("/");
  return `${base}${path}${name}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
}

/** Where pictures are asked for: made from words, or edited. */
export function imageAddressOf(baseUrl: string, kind: "generation" | "edit"): string {
  return `${withoutSlash(baseUrl)}/images/${kind === "edit" ? "edits" : "generations"}`;
}

function withoutSlash(baseUrl: string): string {
  return baseUrl.endsWith("/") ? baseUrl.slice(0, -1) : baseUrl;
}

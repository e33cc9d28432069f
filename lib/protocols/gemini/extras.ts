/** The features of generateContent that cost more than tokens or need permission. */
import type { ExtrasTable } from "../extras.ts";

/** Google's members and tools. */
export const geminiExtras: ExtrasTable = {
  members: {
    serviceTier: { asks: "service_tier", plain: ["", "unspecified", "standard", "flex"] },
    cachedContent: { asks: "vendor_state" },
    // It refers to an answer that the vendor keeps.
    continuationToken: { asks: "vendor_state" },
  },
  plainTools: new Set(["functionDeclarations", "computerUse"]),
  remoteTools: new Set(["mcpServers"]),
  toolMembers: {
    googleSearch: "web_search",
    googleSearchRetrieval: "web_search",
    enterpriseWebSearch: "web_search",
    exaAiSearch: "web_search",
    parallelAiSearch: "web_search",
    codeExecution: "code_execution",
    urlContext: "web_fetch",
    fileSearch: "file_search",
    googleMaps: "google_maps",
    retrieval: "retrieval",
  },
};

/** What a chat request can ask of a vendor beyond tokens. */
import type { ExtrasTable } from "../extras.ts";

/** OpenAI's members, and those that other vendors of the protocol have added. */
export const chatExtras: ExtrasTable = {
  members: {
    // `auto`, as no member at all, is the tier that the operator's own project at the vendor is set to.
    service_tier: { asks: "service_tier", plain: ["auto", "default", "flex"], names: { fast: "priority" } },
    web_search_options: { asks: "hosted_tool", tool: "web_search" },
    // xAI's, Qwen's.
    search_parameters: { asks: "hosted_tool", tool: "web_search" },
    enable_search: { asks: "hosted_tool", tool: "web_search" },
    enable_code_interpreter: { asks: "hosted_tool", tool: "code_interpreter" },
    // OpenRouter's: a search, a parser of files, a router to other models.
    plugins: { asks: "hosted_tool", tool: "plugins" },
    // Groq's.
    compound_custom: { asks: "hosted_tool", tool: "compound" },
    // Azure's: an index, with what opens it.
    data_sources: { asks: "hosted_tool", tool: "data_sources" },
    prompt_cache_options: { asks: "vendor_state", only: "comparison_response_id" },
  },
  plainTools: new Set(["function", "custom"]),
  remoteTools: new Set(["mcp"]),
};

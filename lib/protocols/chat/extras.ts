/** Features of chat requests that cost more than tokens. */
import type { ExtrasTable } from "../extras.ts";

/** Members of OpenAI's API, and of other vendors' extensions. */
export const chatExtras: ExtrasTable = {
  members: {
    // `auto` is the default: the tier of the operator's own project at the vendor.
    service_tier: { asks: "service_tier", plain: ["auto", "default", "flex"], names: { fast: "priority" } },
    web_search_options: { asks: "hosted_tool", tool: "web_search" },
    // xAI and Qwen.
    search_parameters: { asks: "hosted_tool", tool: "web_search" },
    enable_search: { asks: "hosted_tool", tool: "web_search" },
    enable_code_interpreter: { asks: "hosted_tool", tool: "code_interpreter" },
    // OpenRouter: web search, file parser, model router.
    plugins: { asks: "hosted_tool", tool: "plugins" },
    // Groq.
    compound_custom: { asks: "hosted_tool", tool: "compound" },
    // Azure: a search index with its credentials.
    data_sources: { asks: "hosted_tool", tool: "data_sources" },
    // xAI: the answer is an id, with which only the account's own key gets the real one, whose cost no answer tells.
    deferred: { asks: "unpriced" },
    // OpenRouter: a configuration of the account, which may choose another model and tools.
    preset: { asks: "vendor_state" },
    prompt_cache_options: { asks: "vendor_state", only: "comparison_response_id" },
  },
  plainTools: new Set(["function", "custom"]),
  remoteTools: new Set(["mcp"]),
};

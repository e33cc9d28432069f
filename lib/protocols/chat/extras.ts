/** The features of chat requests that cost more than tokens or need permission. */
import { type ExtrasTable, HOSTS_MEMBERS, otherLimits } from "../extras.ts";

/** Members of OpenAI's API and of other vendors' extensions. */
export const chatExtras: ExtrasTable = {
  members: {
    // `auto` is the default. It means the tier of the operator's project at the vendor.
    service_tier: { asks: "service_tier", plain: ["auto", "default", "flex"], names: { fast: "priority" } },
    web_search_options: { asks: "hosted_tool", tool: "web_search" },
    // Groq.
    compound_custom: { asks: "hosted_tool", tool: "compound" },
    // Azure: a search index with its credentials.
    data_sources: { asks: "hosted_tool", tool: "data_sources" },
    // xAI: the answer is only an id. The real answer needs the account's key, and its cost is not reported here.
    deferred: { asks: "unpriced" },
    ...HOSTS_MEMBERS,
    ...otherLimits(["max_tokens", "max_completion_tokens", "n"]),
    prompt_cache_options: { asks: "vendor_state", only: "comparison_response_id" },
  },
  plainTools: new Set(["function", "custom"]),
  remoteTools: new Set(["mcp"]),
};

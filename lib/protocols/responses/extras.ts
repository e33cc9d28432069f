/** The features of responses requests that cost more than tokens or need permission. */
import { type ExtrasTable, HOSTS_MEMBERS, otherLimits } from "../extras.ts";

/**
 * Members and tools of OpenAI. References to earlier responses, conversations, prompts and items are refused elsewhere.
 */
export const responsesExtras: ExtrasTable = {
  members: {
    // `auto` is the default. It means the tier of the operator's project at the vendor.
    service_tier: { asks: "service_tier", plain: ["auto", "default", "flex"], names: { fast: "priority" } },
    prompt_cache_options: { asks: "vendor_state", only: "comparison_response_id" },
    ...HOSTS_MEMBERS,
    ...otherLimits(["max_output_tokens"]),
  },
  callLimit: "max_tool_calls",
  plainTools: new Set([
    "function",
    "custom",
    "namespace",
    "local_shell",
    "shell",
    "apply_patch",
    "computer",
    "computer_use",
    "computer_use_preview",
    "tool_search",
  ]),
  remoteTools: new Set(["mcp"]),
  nested: { list: "input", types: new Set(["additional_tools", "tool_search_output"]) },
  // The vendor looks up an image without data by its id.
  lookedUp: { image_generation_call: "result" },
  toolReports: new Set(["mcp_list_tools"]),
};

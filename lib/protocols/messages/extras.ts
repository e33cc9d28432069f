/** The features of messages requests that cost more than tokens or need permission. */
import { type ExtrasTable, HOSTS_MEMBERS, otherLimits } from "../extras.ts";

/** Anthropic's members, tools and beta features. */
export const messagesExtras: ExtrasTable = {
  members: {
    // `auto` is the default. It uses capacity that the operator has bought, if there is any.
    service_tier: { asks: "service_tier", plain: ["auto", "standard_only"] },
    speed: { asks: "service_tier", plain: ["standard"] },
    inference_geo: { asks: "service_tier", plain: ["global"], prefix: "inference_geo:" },
    mcp_servers: { asks: "remote_mcp" },
    container: { asks: "vendor_state" },
    ...HOSTS_MEMBERS,
    ...otherLimits(["max_tokens"]),
    thread: { asks: "vendor_state", code: "thread_unsupported_request" },
    // Another model answers, at its own price. A list is a feature of the gateway, which knows the prices.
    fallbacks: { asks: "unpriced", notLists: true },
    fallback_credit_token: { asks: "unpriced" },
    billing_policy: { asks: "unpriced" },
    // It compares the message with an earlier one, which the vendor keeps. The answer is the same without it.
    diagnostics: { asks: "unpriced" },
  },
  callLimit: "max_uses",
  plainTools: new Set([
    "custom",
    "bash",
    "text_editor",
    "memory",
    "computer",
    "computer_toolset",
    "browser_toolset",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
  ]),
  remoteTools: new Set(["mcp_toolset"]),
  namedChoice: "tool",
  toolReports: new Set(["mcp_tool_listing"]),
  betas: {
    "context-1m-": { asks: "long_context", over: 200_000 },
    "fast-mode-": { asks: "service_tier", tier: "fast" },
    "mcp-client-": { asks: "remote_mcp" },
    "mcp-tunnels-": { asks: "remote_mcp" },
    "files-api-": { asks: "vendor_state" },
    "skills-": { asks: "vendor_state" },
    "message-threads-": { asks: "vendor_state" },
    "code-execution-": { asks: "hosted_tool", tool: "code_execution" },
    "web-fetch-": { asks: "hosted_tool", tool: "web_fetch" },
    "advisor-tool-": { asks: "hosted_tool", tool: "advisor" },
    "server-side-fallback-": { asks: "unpriced" },
    "fallback-credit-": { asks: "unpriced" },
    "user-profiles-billing-": { asks: "unpriced" },
  },
};

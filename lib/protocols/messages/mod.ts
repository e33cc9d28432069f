/** The messages protocol, `POST /v1/messages` and `/v1/messages/count_tokens`, as a client protocol. */
import { GatewayError } from "../../errors.ts";
import { spliceMembers } from "../../json/mod.ts";
import type { Codec } from "../codec.ts";
import { anthropicErrorReply } from "../error_bodies.ts";
import { plainContents } from "./plain_contents.ts";
import { readPlainPrompt, readPrompt, readSteps } from "./read_prompt.ts";
import { writeReply, writeUsage } from "./write_reply.ts";
import { schema } from "./schema.ts";
import { streamWriter } from "./write_stream.ts";
import { type ExtrasTable, HOSTS_MEMBERS, otherLimits } from "../extras.ts";

/** Anthropic's members, tools and beta features. */
const messagesExtras: ExtrasTable = {
  members: {
    // `auto` is the default. It uses capacity that the operator has bought, if there is any.
    service_tier: { feature: "service_tier", plain: ["auto", "standard_only"] },
    speed: { feature: "service_tier", plain: ["standard"] },
    inference_geo: { feature: "service_tier", plain: ["global"], prefix: "inference_geo:" },
    mcp_servers: { feature: "remote_mcp" },
    container: { feature: "vendor_state" },
    ...HOSTS_MEMBERS,
    ...otherLimits(["max_tokens"]),
    thread: { feature: "vendor_state", code: "thread_unsupported_request" },
    // The vendor's fallback model has a price of its own. A list is the gateway's own feature, whose prices are known.
    fallbacks: { feature: "unpriced", notLists: true },
    fallback_credit_token: { feature: "unpriced" },
    billing_policy: { feature: "unpriced" },
    // It compares the message with an earlier one, which the vendor keeps. The answer is the same without it.
    diagnostics: { feature: "unpriced" },
  },
  callLimit: "max_uses",
  plainTools: new Set(
    `custom bash text_editor memory computer computer_toolset browser_toolset tool_search_tool_regex
    tool_search_tool_bm25`.split(/\s+/),
  ),
  remoteTools: new Set(["mcp_toolset"]),
  namedChoice: "tool",
  toolReports: new Set(["mcp_tool_listing"]),
  betas: {
    "context-1m-": { feature: "long_context", over: 200_000 },
    "fast-mode-": { feature: "service_tier", tier: "fast" },
    "mcp-client-": { feature: "remote_mcp" },
    "mcp-tunnels-": { feature: "remote_mcp" },
    "files-api-": { feature: "vendor_state" },
    "skills-": { feature: "vendor_state" },
    "message-threads-": { feature: "vendor_state" },
    "code-execution-": { feature: "hosted_tool", tool: "code_execution" },
    "web-fetch-": { feature: "hosted_tool", tool: "web_fetch" },
    "advisor-tool-": { feature: "hosted_tool", tool: "advisor" },
    "server-side-fallback-": { feature: "unpriced" },
    "fallback-credit-": { feature: "unpriced" },
    "user-profiles-billing-": { feature: "unpriced" },
  },
};

export { readSteps } from "./read_prompt.ts";
export { countTokensSchema } from "./schema.ts";

/**
 * Accepted versions. The Python SDK and the npm SDK before 1.0 send 2023-06-01, later npm SDKs 2026-10-21. The gateway
 * treats both in the same way: the newer one only forbids sampling parameters that many models accept.
 */
const VERSIONS: readonly string[] = ["2023-06-01", "2026-10-21"];

/**
 * Checks the `anthropic-version` header.
 * @param header its value; `null` if it is missing
 * @throws {GatewayError} `invalid`, for a missing or unknown version
 */
export function checkVersion(header: string | null): void {
  const accepted = VERSIONS.join(" or ");
  if (header === null) {
    throw new GatewayError("invalid", `Missing required header anthropic-version: expected ${accepted}`);
  }
  if (!VERSIONS.includes(header)) {
    const headerText = JSON.stringify(header.slice(0, 64));
    throw new GatewayError("invalid", `Cannot use header anthropic-version ${headerText}: expected ${accepted}`);
  }
}

/** The messages protocol. */
export const messages: Codec = {
  protocol: "messages",
  schema,
  checkHeaders: (header) => checkVersion(header("anthropic-version")),
  readPrompt,
  readSteps,
  plain: { contents: plainContents, readPrompt: readPlainPrompt },
  extras: messagesExtras,
  writeReply,
  writer: streamWriter,
  hasUsage: ({ event }) => event === "message_delta",
  withUsage: (text, usage) => spliceMembers(text, { usage: JSON.stringify(writeUsage(usage)) }),
  writeError: anthropicErrorReply,
  keepAlive: 'event: ping\ndata: {"type": "ping"}\n\n',
  // These texts make Claude Code shorten its conversation or lower its max_tokens.
  contextError({ input, output, limit }) {
    const message = input > limit
      ? `prompt is too long: ${input} tokens > ${limit} maximum`
      : `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${limit}, decrease input length or ` +
        "`max_tokens` and try again";
    return new GatewayError("invalid", message, { code: "context_length_exceeded" });
  },
};

/** The responses protocol, `POST /v1/responses`, as a client protocol. */
import { GatewayError } from "../../errors.ts";
import { findValue, spliceMembers } from "../../json/mod.ts";
import { replaceSpan } from "../../text.ts";
import type { Codec } from "../codec.ts";
import { openaiErrorReply } from "../error_bodies.ts";
import { COMPLETE_EVENTS } from "./output_item.ts";
import { plainContents } from "./plain_contents.ts";
import { readPlainPrompt, readPrompt } from "./read_prompt.ts";
import { streamWriter, writeReply } from "./write_stream.ts";
import { schema } from "./schema.ts";
import { writeUsage } from "./responses_usage.ts";
import { type ExtrasTable, HOSTS_MEMBERS, otherLimits } from "../extras.ts";

/**
 * Members and tools of OpenAI. References to earlier responses, conversations, prompts and items are refused elsewhere.
 */
const responsesExtras: ExtrasTable = {
  members: {
    // `auto` is the default. It means the tier of the operator's project at the vendor.
    service_tier: { feature: "service_tier", plain: ["auto", "default", "flex"], names: { fast: "priority" } },
    prompt_cache_options: { feature: "vendor_state", only: "comparison_response_id" },
    ...HOSTS_MEMBERS,
    ...otherLimits(["max_output_tokens"]),
  },
  callLimit: "max_tool_calls",
  plainTools: new Set(
    `function custom namespace local_shell shell apply_patch computer computer_use computer_use_preview tool_search`
      .split(/\s+/),
  ),
  remoteTools: new Set(["mcp"]),
  nested: { list: "input", types: new Set(["additional_tools", "tool_search_output"]) },
  // The vendor looks up an image without data by its id.
  lookedUp: { image_generation_call: "result" },
  toolReports: new Set(["mcp_list_tools"]),
};

export { COMPLETE_EVENTS };

/** The responses protocol without state at the vendor: every request has its whole conversation. */
export const responses: Codec = {
  protocol: "responses",
  schema,
  readPrompt,
  plain: { contents: plainContents, readPrompt: readPlainPrompt },
  extras: responsesExtras,
  writeReply,
  writer: streamWriter,
  hasUsage: ({ event, data }) =>
    event === undefined ? /"type"\s*:\s*"response\.(completed|incomplete)"/.test(data) : COMPLETE_EVENTS.has(event),
  withUsage(text, usage) {
    const edits = { usage: JSON.stringify(writeUsage(usage)) };
    const response = findValue(text, ["response"]);
    if (response === undefined) return spliceMembers(text, edits);
    return replaceSpan(text, response, spliceMembers(text.slice(response.start, response.end), edits));
  },
  writeError: openaiErrorReply,
  // Only one line break: after a blank line some clients dispatch an empty event.
  keepAlive: ": keep-alive\n",
  contextError({ input, output, limit }) {
    const message = input > limit
      ? `Your input exceeds the context window of this model: it has ${input} tokens, the limit is ${limit}`
      : `Your input and max_output_tokens exceed the context window of this model: ${input} + ${output} tokens, the ` +
        `limit is ${limit}`;
    return new GatewayError("invalid", message, { param: "input", code: "context_length_exceeded" });
  },
};

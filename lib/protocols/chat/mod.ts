/** Chat completions, `POST /v1/chat/completions`, as a client protocol. */
import { GatewayError } from "../../errors.ts";
import { findValue, spliceMembers } from "../../json/mod.ts";
import type { Codec, Frame } from "../codec.ts";
import { openaiErrorReply } from "../error_bodies.ts";
import { plainContents } from "./plain_contents.ts";
import { readPlainPrompt, readPrompt, readSteps } from "./read_prompt.ts";
import { writeReply } from "./write_reply.ts";
import { chatRequest } from "./schema.ts";
import { streamWriter } from "./write_stream.ts";
import { writeUsage } from "./chat_usage.ts";
import { type ExtrasTable, HOSTS_MEMBERS, otherLimits } from "../extras.ts";

/** Members of OpenAI's API and of other vendors' extensions. */
const chatExtras: ExtrasTable = {
  members: {
    // `auto` is the default. It means the tier of the operator's project at the vendor.
    service_tier: { feature: "service_tier", plain: ["auto", "default", "flex"], names: { fast: "priority" } },
    web_search_options: { feature: "hosted_tool", tool: "web_search" },
    // Groq.
    compound_custom: { feature: "hosted_tool", tool: "compound" },
    // Azure: a search index with its credentials.
    data_sources: { feature: "hosted_tool", tool: "data_sources" },
    // xAI: the answer is only an id. The real answer needs the account's key, and its cost is not reported here.
    deferred: { feature: "unpriced" },
    ...HOSTS_MEMBERS,
    ...otherLimits(["max_tokens", "max_completion_tokens", "n"]),
    prompt_cache_options: { feature: "vendor_state", only: "comparison_response_id" },
  },
  plainTools: new Set(["function", "custom"]),
  remoteTools: new Set(["mcp"]),
};

/** Matches members `usage`, also with escaped letters. Nothing else matches: quotes inside a text are escaped. */
const USAGE_MEMBER = /"(?:u|\\u0075)(?:s|\\u0073)(?:a|\\u0061)(?:g|\\u0067)(?:e|\\u0065)"\s*:\s*\{/;

/** True for a chunk with `usage` at the top. Clients do not read that of a choice (Moonshot) or of `x_groq`. */
function hasUsage({ data }: Frame): boolean {
  if (!USAGE_MEMBER.test(data)) return false;
  const usage = findValue(data, ["usage"]);
  return usage !== undefined && data[usage.start] === "{";
}

/** The chat protocol. */
export const chat: Codec = {
  protocol: "chat",
  schema: chatRequest,
  readPrompt,
  readSteps,
  plain: { contents: plainContents, readPrompt: readPlainPrompt },
  extras: chatExtras,
  writeReply,
  writer: streamWriter,
  hasUsage,
  withUsage: (text, usage) => spliceMembers(text, { usage: JSON.stringify(writeUsage(usage)) }),
  usageFrame: (like, usage) => ({
    ...like,
    data: spliceMembers(like.data, { choices: "[]", x_groq: undefined, usage: JSON.stringify(writeUsage(usage)) }),
  }),
  writeError: openaiErrorReply,
  // Only one line break: after a blank line some clients dispatch an empty event.
  keepAlive: ": keep-alive\n",
  contextError({ input, output, limit }) {
    const total = input + output;
    const explanation = input > limit
      ? `your messages resulted in ${input} tokens. Please reduce the length of the messages.`
      : `you requested ${total} tokens (${input} in the messages, ${output} in the completion). Please reduce the ` +
        "length of the messages or completion.";
    const message = `This model's maximum context length is ${limit} tokens. However, ${explanation}`;
    return new GatewayError("invalid", message, { param: "messages", code: "context_length_exceeded" });
  },
};

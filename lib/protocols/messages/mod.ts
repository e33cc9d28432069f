/** The client's side of the messages protocol: `POST /v1/messages` and `/v1/messages/count_tokens`. */
import { GatewayError } from "../../errors.ts";
import { spliceMembers } from "../../json/mod.ts";
import type { Codec } from "../codec.ts";
import { anthropicErrorReply } from "../error_bodies.ts";
import { messagesExtras } from "./extras.ts";
import { plainContents } from "./plain_contents.ts";
import { readPlainPrompt, readPrompt } from "./read_prompt.ts";
import { writeReply, writeUsage } from "./write_reply.ts";
import { schema } from "./schema.ts";
import { streamWriter } from "./write_stream.ts";
import { writeInputs } from "./tool_input.ts";
import { checkVersion } from "./version.ts";

export { readCountPrompt } from "./read_prompt.ts";
export { countTokensSchema } from "./schema.ts";
export { writeInputs } from "./tool_input.ts";
export { writeCount } from "./write_reply.ts";
export { checkVersion };

export const messages: Codec = {
  protocol: "messages",
  schema,
  checkHeaders: (header) => checkVersion(header("anthropic-version")),
  writeTexts: writeInputs,
  readPrompt,
  plain: { contents: plainContents, readPrompt: readPlainPrompt },
  extras: messagesExtras,
  writeReply,
  writer: streamWriter,
  tellsUsage: ({ event }) => event === "message_delta",
  withUsage: (text, usage) => spliceMembers(text, { usage: JSON.stringify(writeUsage(usage)) }),
  writeError: anthropicErrorReply,
  keepAlive: 'event: ping\ndata: {"type": "ping"}\n\n',
  // These words make Claude Code shorten its conversation or its max_tokens.
  contextError({ input, output, limit }) {
    const message = input > limit
      ? `prompt is too long: ${input} tokens > ${limit} maximum`
      : `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${limit}, decrease input length or ` +
        "`max_tokens` and try again";
    return new GatewayError("invalid", message, { code: "context_length_exceeded" });
  },
};

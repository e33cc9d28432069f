/** The responses protocol, `POST /v1/responses`, as a client protocol. */
import { GatewayError } from "../../errors.ts";
import { findValue, spliceMembers } from "../../json/mod.ts";
import { replaceSpan } from "../../text.ts";
import type { Codec } from "../codec.ts";
import { openaiErrorReply } from "../error_bodies.ts";
import { responsesExtras } from "./extras.ts";
import { COMPLETE_EVENTS } from "./output_item.ts";
import { plainContents } from "./plain_contents.ts";
import { readPlainPrompt, readPrompt } from "./read_prompt.ts";
import { streamWriter, writeReply } from "./write_stream.ts";
import { schema } from "./schema.ts";
import { writeUsage } from "./responses_usage.ts";

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

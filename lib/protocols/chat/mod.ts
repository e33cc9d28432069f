/** Chat completions: `POST /v1/chat/completions`, from the client's side. */
import { GatewayError } from "../../errors.ts";
import { spliceMembers } from "../../json_splice.ts";
import type { Codec } from "../codec.ts";
import { openaiErrorReply } from "../error_bodies.ts";
import { readPrompt } from "./prompt.ts";
import { writeReply } from "./reply.ts";
import { chatRequest } from "./schema.ts";
import { writer } from "./stream.ts";
import { writeUsage } from "./usage.ts";

/** The chat protocol. */
export const chat: Codec = {
  protocol: "chat",
  schema: chatRequest,
  readPrompt,
  writeReply,
  writer,
  // Quotes inside a text are escaped: this can only be a member.
  tellsUsage: ({ data }) => /"usage"\s*:\s*\{/.test(data),
  withUsage: (text, usage) => spliceMembers(text, { usage: JSON.stringify(writeUsage(usage)) }),
  usageFrame: (like, usage) => ({
    ...like,
    data: spliceMembers(like.data, { choices: "[]", usage: JSON.stringify(writeUsage(usage)) }),
  }),
  writeError: openaiErrorReply,
  // One line break only: a blank line would make some clients dispatch an empty event.
  heartbeat: ": keep-alive\n",
  contextError({ input, limit }) {
    const message = `This model's maximum context length is ${limit} tokens. However, your messages resulted in ` +
      `${input} tokens. Please reduce the length of the messages.`;
    return new GatewayError("invalid", message, { param: "messages", code: "context_length_exceeded" });
  },
};

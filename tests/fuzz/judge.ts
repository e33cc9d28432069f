/** Checks answers to broken requests. */
import { anthropicErrorSchema, googleErrorSchema, openaiErrorSchema } from "../../lib/openapi/schemas.ts";
import type { RawResponse } from "../server/serve.ts";
import type { Mutant } from "./requests.ts";

const SCHEMAS = { openai: openaiErrorSchema, anthropic: anthropicErrorSchema, google: googleErrorSchema };

/** Texts that end a stream: the end of a protocol's answer, its error, or an image. */
const ENDS =
  /event: message_stop\n|event: error\n|data: \[DONE\]\n|event: response\.failed\n|event: image_(generation|edit)\.completed\n|"finishReason":|^data: \{"error":/m;

/** The fault of an answer; `undefined` if it is correct. */
export function complaint(
  { status, headers, body: sent }: RawResponse,
  { bytes, soundHead, errors }: Mutant,
): string | undefined {
  if (status >= 500) return "the gateway failed";
  // The server rejects messages without a valid frame by itself: without a body, or without an answer.
  if (!soundHead && !headers.has("x-request-id")) return status === 0 || status === 400 ? undefined : "no request id";
  if (!/^req_[a-z0-9]+$/.test(headers.get("x-request-id") ?? "")) return "no request id";
  const body = bodyOf(headers, sent);
  if (body === undefined) return "the body has no end";
  const isHead = bytes[0] === "H".charCodeAt(0);
  if (isHead) return body === "" ? undefined : "HEAD has a body";
  try {
    if (status >= 400) {
      const { error } = SCHEMAS[errors].safeParse(JSON.parse(body));
      return error === undefined ? undefined : `the error is of another shape: ${error.message}`;
    }
    if (status === 204 || status === 304) return body === "" ? undefined : "a body where there is none";
    if (!headers.get("content-type")?.startsWith("text/event-stream")) return void JSON.parse(body);
  } catch (error) {
    return String(error);
  }
  return ENDS.test(body) && body.endsWith("\n\n") ? undefined : "the stream has no end";
}

/** The bytes of this answer: others may follow, because a broken head can turn one request into several. */
function bodyOf(headers: Headers, sent: string): string | undefined {
  const length = headers.get("content-length");
  if (length !== null) return new TextDecoder().decode(new TextEncoder().encode(sent).subarray(0, Number(length)));
  return headers.get("transfer-encoding") === "chunked" && sent !== "" ? outOfChunks(sent) : sent;
}

/** A decoded chunked body; `undefined` if its end is missing. */
function outOfChunks(sent: string): string | undefined {
  const bytes = new TextEncoder().encode(sent);
  const decoder = new TextDecoder();
  let text = "";
  for (let at = 0;;) {
    const end = bytes.indexOf(10, at);
    const size = parseInt(new TextDecoder().decode(bytes.subarray(at, Math.max(at, end))), 16);
    if (end < 0 || Number.isNaN(size)) return undefined;
    if (size === 0) return text + decoder.decode();
    text += decoder.decode(bytes.subarray(end + 1, end + 1 + size), { stream: true });
    at = end + 1 + size + 2;
  }
}

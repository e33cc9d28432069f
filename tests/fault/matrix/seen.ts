/** What a client saw of an answer, judged by the rules of its protocol. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/canonical/types.ts";
import { sseReader } from "../../../lib/http/sse.ts";
import { anthropicErrorSchema, openaiErrorSchema } from "../../../lib/openapi/schemas.ts";
import { SUCCESS } from "../../upstreams/said.ts";
import type { Seen } from "./fault.ts";
import { TEXT } from "./said.ts";

/** An answer as a client got it. */
export interface Got {
  status: number;
  headers: Headers;
  text: string;
}

// deno-lint-ignore no-explicit-any
type Parsed = any;

/** What was seen. @throws {AssertionError} where it is nothing that a client of this protocol may see */
export function seenOf(
  got: Got,
  { protocol, stream, endless }: { protocol: Protocol; stream: boolean; endless: boolean },
): Seen {
  const { status, headers, text } = got;
  assert(/^req_[a-z0-9]+$/.test(headers.get("x-request-id") ?? ""), "no request id");
  assert(!/127\.0\.0\.1|localhost|upstream-key|EVIL/.test(text), "it tells what is not for clients");
  if (status !== 200) {
    assertErrorBody(protocol, JSON.parse(text));
    return status;
  }
  if (!stream) {
    assertEquals(wordsOfWhole(protocol, JSON.parse(text)), TEXT);
    return "answer";
  }
  const frames = readFrames(text);
  assert(text.endsWith("\n\n"), "the last event has no end");
  const isSuccess = text.includes(SUCCESS[protocol]) &&
    !(protocol === "responses" && !hasEvent(frames, SUCCESS.responses));
  const [failure, ...others] = frames.filter((frame) => isFailure(protocol, frame));
  if (failure === undefined) {
    assert(isSuccess, "the stream ends without a word");
    assertEquals(wordsOfStream(protocol, frames), TEXT);
    return "answer";
  }
  assertEquals(others, [], "there are several errors");
  assert(protocol === "responses" ? !hasEvent(frames, SUCCESS.responses) : !isSuccess, "an error, and a success");
  assertErrorEvent(protocol, failure);
  assert(endless || TEXT.startsWith(wordsOfStream(protocol, frames)), "text that nobody said");
  return "error within";
}

function assertErrorBody(protocol: Protocol, body: Parsed): void {
  const schema = protocol === "messages" ? anthropicErrorSchema : openaiErrorSchema;
  const { error } = schema.safeParse(body);
  assert(error === undefined, `the error is of another shape: ${error?.message}`);
}

function assertErrorEvent(protocol: Protocol, { event, data }: ParsedFrame): void {
  switch (protocol) {
    case "chat":
      return assertErrorBody("chat", { error: data.error });
    case "messages":
      assertEquals([event, data.type, typeof data.error.type, typeof data.error.message], [
        "error",
        "error",
        "string",
        "string",
      ]);
      return;
    case "responses":
      assertEquals([event, data.type], ["response.failed", "response.failed"]);
      assertEquals([data.response.status, typeof data.response.error.code, typeof data.response.error.message], [
        "failed",
        "string",
        "string",
      ]);
  }
}

interface ParsedFrame {
  event: string | undefined;
  data: Parsed;
}

function readFrames(text: string): ParsedFrame[] {
  const reader = sseReader();
  return [...reader.push(text), ...reader.end()].map(({ event, data }) => ({
    event,
    data: data === "[DONE]" ? data : JSON.parse(data),
  }));
}

/** Clients of responses are told by an `error`, too, just before. */
function isFailure(protocol: Protocol, { data }: ParsedFrame): boolean {
  if (protocol === "chat") return data.error !== undefined;
  return data.type === (protocol === "messages" ? "error" : "response.failed");
}

function hasEvent(frames: readonly ParsedFrame[], type: string): boolean {
  return frames.some(({ data }) => data.type === type);
}

function wordsOfStream(protocol: Protocol, frames: readonly ParsedFrame[]): string {
  return frames.map(({ data }) => {
    if (protocol === "chat") return data.choices?.[0]?.delta?.content ?? "";
    if (protocol === "responses") return data.type === "response.output_text.delta" ? data.delta : "";
    return data.type === "content_block_delta" ? data.delta.text : "";
  }).join("");
}

function wordsOfWhole(protocol: Protocol, body: Parsed): string {
  if (protocol === "chat") return body.choices[0].message.content;
  return protocol === "messages" ? body.content[0].text : body.output[0].content[0].text;
}

import { assertEquals } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type { ContentBlock, Reply, TokenUsage } from "../../../lib/protocols/canonical/types.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";
import { REPLIES, responseContextOf } from "./replies.ts";
import { ORIGIN } from "./upstream_answers.ts";

for (const { name, reply, prompt } of REPLIES) {
  Deno.test(`our readers reverse our writers for ${name}`, () => {
    const context = responseContextOf(prompt);
    const writer = messages.writer(context);
    const reader = messagesUpstream.reader(ORIGIN);
    const frames = [...eventsOf(reply).flatMap((event) => writer.push(event)), ...writer.end()];
    const expected = asRead(reply, prompt?.reasoning?.display === "omitted");
    assertEquals(
      normal(aggregateEvents([...frames.flatMap((frame) => reader.push(frame)), ...reader.end()])),
      expected,
    );
    assertEquals(normal(messagesUpstream.readReply(messages.writeReply(reply, context), ORIGIN)), expected);
  });
}

/** A reply as this protocol can express it. */
function asRead(reply: Reply, omitted: boolean): Reply {
  const refused = reply.blocks.some(({ type }) => type === "refusal");
  return normal({
    ...reply,
    id: "msg_r1",
    finish: refused && reply.finish === "end" ? "refusal" : reply.finish,
    blocks: reply.blocks.flatMap((block) => blockAsRead(block, omitted)),
  });
}

function blockAsRead(block: ContentBlock, omitted: boolean): ContentBlock[] {
  switch (block.type) {
    case "text": {
      const { citations, ...text } = block;
      const own = citations?.filter(({ from }) => from === "messages") ?? [];
      if (block.text === "") return [];
      return [own.length > 0 ? { ...text, citations: own } : text];
    }
    case "refusal":
      return [{ type: "text", text: block.text }];
    case "tool_call": {
      const { custom, ...call } = block;
      return [custom ? { ...call, arguments: JSON.stringify({ input: block.arguments }) } : call];
    }
    case "vendor_specific":
      return block.from === "messages" ? [block] : [];
    case "reasoning": {
      const { signature } = block;
      const text = omitted ? "" : block.text;
      if (text === "" && signature === undefined) return [];
      const hidden = text === "";
      // To a reader, an envelope is the upstream's own value.
      const sealed = signature && signature.issuer !== "anthropic"
        ? { issuer: "anthropic", value: `sluice1.${encode(signature)}` }
        : signature;
      const redacted = block.unknownMembers !== undefined && sealed !== undefined;
      return [{
        type: "reasoning",
        text,
        ...(hidden && { hidden }),
        ...(block.unknownMembers !== undefined && { unknownMembers: block.unknownMembers }),
        ...(sealed && { signature: redacted ? { ...sealed, id: "redacted" } : sealed }),
      }];
    }
    default:
      return [block];
  }
}

function encode(value: object): string {
  return btoa(JSON.stringify(value)).replaceAll("=", "");
}

/** Clients get zero for unknown numbers. */
function normal(reply: Reply): Reply {
  const usage: TokenUsage = {
    prompt: 0,
    input_cache_read: 0,
    input_cache_write_5m: 0,
    input_cache_write_1h: 0,
    completion: 0,
    ...reply.usage,
  };
  return { ...reply, usage };
}

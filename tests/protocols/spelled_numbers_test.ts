import { assert, assertEquals } from "@std/assert";
import type { ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { isObject, parseJson } from "../../lib/json/mod.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { RECORDED, type RecordedStream } from "../golden/recorded.ts";
import { WHOLE } from "../upstream/replies.ts";

/** Indices and counts of every protocol; those of citations are passed on as they are. */
const NUMBERS = /("(?:(?:output_|content_|summary_)?index|\w+_tokens|\w+TokenCount)": ?)(\d+)(?=[,}\]])/g;

function eventsOf({ protocol, frames }: RecordedStream, spell: (data: string) => string): readonly ReplyEvent[] {
  const reader = UPSTREAM_CODECS[protocol].reader({ issuer: "vendor" });
  return [...frames.flatMap((frame) => reader.push({ ...frame, data: spell(frame.data) })), ...reader.end()];
}

/** Errors by their messages: their causes differ. */
function summaryOf(events: readonly ReplyEvent[]): unknown {
  return events.map((event) => event.type === "error" ? { ...event, error: event.error.message } : event);
}

Deno.test("streams are read with indices and counts such as 1.0 and 1e0", () => {
  let spelled = 0;
  for (const stream of RECORDED) {
    for (const spelling of ["$1$2.0", "$1$2e0"]) {
      const spell = (data: string) => {
        const other = data.replaceAll(NUMBERS, spelling);
        if (other !== data) spelled++;
        return other;
      };
      assertEquals(summaryOf(eventsOf(stream, spell)), summaryOf(eventsOf(stream, (data) => data)), stream.name);
    }
  }
  assert(spelled > 1_000, `${spelled} events`);
});

Deno.test("whole answers are read with counts such as 1.0", () => {
  for (const protocol of ["chat", "responses", "messages"] as const) {
    const text = JSON.stringify(WHOLE[protocol]).replaceAll(NUMBERS, "$1$2.0");
    const body = parseJson(text);
    assert(isObject(body));
    const reply = UPSTREAM_CODECS[protocol].readReply(body, { issuer: "vendor" });
    assertEquals([reply.usage.prompt, reply.usage.completion], [7, 2], protocol);
  }
});

/** The events of a whole stream. */
import { SseReader } from "../../lib/server/sse.ts";

/** An event of a stream. Data that is a JSON object is parsed. */
export interface StreamedEvent {
  event: string | undefined;
  // deno-lint-ignore no-explicit-any
  data: any;
}

/** Reads a stream that has ended. */
export function readSse(text: string): StreamedEvent[] {
  const reader = new SseReader();
  return [...reader.push(text), ...reader.end()].map(({ event, data }) => ({
    event,
    data: data.startsWith("{") ? JSON.parse(data) : data,
  }));
}

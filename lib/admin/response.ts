/** Responses of the admin API: JSON that must not be cached. */
import { runSliced } from "../scheduler.ts";

const HEADERS = { "cache-control": "no-store" };

/** Items of a list that are written in one step. */
const ITEMS_PER_STEP = 100;

/** Returns a value as a JSON response. */
export function adminResponse(value: object, status = 200): Response {
  return Response.json(value, { status, headers: HEADERS });
}

/**
 * Returns an object whose members may be long lists as a JSON response. The text is written in slices, so that other
 * requests are served in between. It is complete before the response begins, so that a failure can still set the
 * status.
 */
export async function streamedAdminResponse(value: object): Promise<Response> {
  if (!Object.values(value).some(isLong)) return adminResponse(value);
  const chunks = await runSliced(writeChunks(value));
  return new Response(streamOf(chunks), { headers: { ...HEADERS, "content-type": "application/json" } });
}

function isLong(member: unknown): member is readonly unknown[] {
  return Array.isArray(member) && member.length > ITEMS_PER_STEP;
}

/** Writes the same bytes as `JSON.stringify`, in steps. */
function* writeChunks(value: object): Generator<void, Uint8Array[]> {
  const encoder = new TextEncoder();
  const chunks: Uint8Array[] = [];
  let text = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    text += `${text === "{" && chunks.length === 0 ? "" : ","}${JSON.stringify(name)}:`;
    if (!isLong(member)) {
      text += JSON.stringify(member);
      continue;
    }
    for (let at = 0; at < member.length; at += ITEMS_PER_STEP) {
      // The brackets of the slice are dropped: the list has its own.
      text += `${at === 0 ? "[" : ","}${JSON.stringify(member.slice(at, at + ITEMS_PER_STEP)).slice(1, -1)}`;
      chunks.push(encoder.encode(text));
      text = "";
      yield;
    }
    text += "]";
  }
  chunks.push(encoder.encode(`${text}}`));
  return chunks;
}

/** Returns chunks as a stream that sends them as fast as they are read. */
function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks[next++];
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  });
}

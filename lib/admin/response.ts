/** Responses of the admin side: JSON that is not cached. */
import { runSliced } from "../scheduler.ts";

const HEADERS = { "cache-control": "no-store" };

/** Items of a list that are written at once. */
const ITEMS_AT_ONCE = 100;

/** A JSON answer. `value` may be of any type that JSON can say; amounts of money are decimal strings already. */
export function adminResponse(value: object, status = 200): Response {
  return Response.json(value, { status, headers: HEADERS });
}

/**
 * The same for an object of which members may be long lists. It is written a slice at a time, so that others are served
 * meanwhile, and whole before its first byte goes: what fails, fails before there is a status.
 */
export async function streamedAdminResponse(value: object): Promise<Response> {
  if (!Object.values(value).some(isLong)) return adminResponse(value);
  const pieces = await runSliced(writePieces(value));
  return new Response(streamOf(pieces), { headers: { ...HEADERS, "content-type": "application/json" } });
}

function isLong(member: unknown): member is readonly unknown[] {
  return Array.isArray(member) && member.length > ITEMS_AT_ONCE;
}

/** The same bytes as `JSON.stringify`. */
function* writePieces(value: object): Generator<void, Uint8Array[]> {
  const encoder = new TextEncoder();
  const pieces: Uint8Array[] = [];
  let text = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    text += `${text === "{" && pieces.length === 0 ? "" : ","}${JSON.stringify(name)}:`;
    if (!isLong(member)) {
      text += JSON.stringify(member);
      continue;
    }
    for (let at = 0; at < member.length; at += ITEMS_AT_ONCE) {
      // Without its brackets: the list has only two.
      text += `${at === 0 ? "[" : ","}${JSON.stringify(member.slice(at, at + ITEMS_AT_ONCE)).slice(1, -1)}`;
      pieces.push(encoder.encode(text));
      text = "";
      yield;
    }
    text += "]";
  }
  pieces.push(encoder.encode(`${text}}`));
  return pieces;
}

/** Piece by piece, as fast as it is read. */
function streamOf(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[next++];
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
}

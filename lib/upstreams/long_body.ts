/** Encodes large request bodies. */
import { LARGE_BODY_BYTES, runSliced } from "../scheduler.ts";
import { encodeUtf8 } from "../text.ts";

/** Encodes a long text as UTF-8 in slices. */
export async function encodeLong(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return await runSliced(encodeUtf8(text));
}

/** True if a text is long enough to be encoded in slices. */
export function isLongText(body: unknown): body is string {
  return typeof body === "string" && body.length > LARGE_BODY_BYTES;
}

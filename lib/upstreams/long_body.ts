/** Encodes large request bodies. */
import { inSlices, LONG_STEP } from "../scheduler.ts";
import { encodeSteps } from "../json/utf8_steps.ts";

/** Encodes a long text as UTF-8 in slices. */
export async function encodeLong(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return await inSlices(encodeSteps(text));
}

/** True if a text is long enough to be encoded in slices. */
export function isLongText(body: unknown): body is string {
  return typeof body === "string" && body.length > LONG_STEP;
}

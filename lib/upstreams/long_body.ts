/** Request bodies of many megabytes as bytes. */
import { inSlices, LONG_STEP } from "../scheduler.ts";
import { encodeSteps } from "../json/utf8_steps.ts";

/** A long text in UTF-8, encoded with turns for others in between. */
export async function encodeLong(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return await inSlices(encodeSteps(text));
}

/** Whether a body is a text that is encoded so. */
export function isLongText(body: unknown): body is string {
  return typeof body === "string" && body.length > LONG_STEP;
}

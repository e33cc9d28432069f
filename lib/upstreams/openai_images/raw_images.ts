/** Checks the base64 of images from hosts, and converts images into the requested format. */
import { Buffer } from "node:buffer";
import { GatewayError } from "../../errors.ts";
import { base64Steps } from "../../images/base64_steps.ts";
import { convertImage } from "../../images/codec.ts";
import type { ImageRequest } from "../../images/types.ts";
import { imageSizeBase64 } from "../../billing/image_size.ts";
import { runSliced } from "../../scheduler.ts";
import type { RawImage } from "./cut_images.ts";

/** Characters of base64 in one step; a multiple of four. */
const STEP_LENGTH = 256 * 1024;

/**
 * Returns an image as canonical base64, in the requested format.
 * @throws {GatewayError} `upstream`, final, if it is not base64, not an image, or cannot be converted; the signal's
 * reason if it is aborted meanwhile
 */
export async function readImage(
  raw: RawImage,
  { request: { format, compression }, signal }: { request: ImageRequest; signal: AbortSignal },
): Promise<string> {
  const base64 = await runSliced(clean(raw));
  const receivedFormat = imageSizeBase64(base64)?.type;
  if (receivedFormat === undefined || receivedFormat === "gif") {
    throw unreadable("expected a PNG, JPEG or WebP image");
  }
  if (receivedFormat === format) return base64;
  try {
    const bytes = await runSliced(decode(base64));
    return await runSliced(base64Steps(await convertImage(bytes, { format, compression, signal })));
  } catch (cause) {
    signal.throwIfAborted();
    throw new GatewayError("upstream", `Cannot make ${format} of the image that the upstream sent`, {
      cause,
      final: true,
    });
  }
}

/** Removes JSON's escapes (some hosts write `\/`), checks every character, and adds missing padding. */
function* clean(raw: RawImage): Generator<void, string> {
  const out: string[] = [];
  let length = 0;
  /** An escape that continues in the next piece. */
  let openEscape = "";
  let padding = 0;
  for (const piece of raw) {
    for (let start = 0; start < piece.length; start += STEP_LENGTH) {
      let text = openEscape + piece.slice(start, start + STEP_LENGTH);
      openEscape = "";
      if (text.includes("\\")) {
        openEscape = /\\(?:u[0-9a-fA-F]{0,3})?$/.exec(text)?.[0] ?? "";
        text = unescape(text.slice(0, text.length - openEscape.length));
      }
      const body = /^[A-Za-z0-9+/]*/.exec(text)?.[0].length ?? 0;
      if (!/^=*$/.test(text.slice(body)) || (padding > 0 && body > 0)) throw unreadable("expected base64");
      padding += text.length - body;
      length += text.length;
      out.push(text);
      yield;
    }
  }
  const missing = (4 - length % 4) % 4;
  if (openEscape !== "" || missing === 3 || padding > 2 || (padding > 0 && missing !== 0)) {
    throw unreadable("expected base64");
  }
  out.push("=".repeat(missing));
  return out.join("");
}

function unescape(text: string): string {
  return text.replaceAll("\\/", "/").replaceAll(
    /\\u00(2[bf]|3d)|\\[nr]/gi,
    (_, code?: string) => code === undefined ? "" : String.fromCharCode(parseInt(code, 16)),
  );
}

function* decode(base64: string): Generator<void, Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(Math.floor(base64.length / 4) * 3);
  let length = 0;
  for (let start = 0; start < base64.length; start += STEP_LENGTH) {
    const part = Buffer.from(base64.slice(start, start + STEP_LENGTH), "base64");
    bytes.set(part, length);
    length += part.length;
    yield;
  }
  return bytes.subarray(0, length);
}

function unreadable(expected: string): GatewayError {
  return new GatewayError("upstream", `Cannot read the upstream's image: ${expected}`, { final: true });
}

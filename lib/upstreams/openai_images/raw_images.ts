/** Images as hosts send them: base64 that is checked, and turned into the format that was asked for. */
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
 * An image as base64 in its one canonical spelling and in the format that the request wants.
 * @throws {GatewayError} `upstream`, final, where it is no base64, no image, or cannot be converted; the signal's
 * reason where it is aborted meanwhile
 */
export async function readImage(
  raw: RawImage,
  { request: { format, compression }, signal }: { request: ImageRequest; signal: AbortSignal },
): Promise<string> {
  const base64 = await runSliced(clean(raw));
  const type = imageSizeBase64(base64)?.type;
  if (type === undefined || type === "gif") throw unreadable("expected a PNG, JPEG or WebP image");
  if (type === format) return base64;
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

/** Takes JSON's escapes out (some hosts write `\/`), checks every character, adds padding that was left out. */
function* clean(raw: RawImage): Generator<void, string> {
  const out: string[] = [];
  let length = 0;
  /** An escape that the next piece goes on with. */
  let open = "";
  let padding = 0;
  for (const piece of raw) {
    for (let at = 0; at < piece.length; at += STEP_LENGTH) {
      let text = open + piece.slice(at, at + STEP_LENGTH);
      open = "";
      if (text.includes("\\")) {
        open = /\\(?:u[0-9a-fA-F]{0,3})?$/.exec(text)?.[0] ?? "";
        text = unescape(text.slice(0, text.length - open.length));
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
  if (open !== "" || missing === 3 || padding > 2 || (padding > 0 && missing !== 0)) {
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
  for (let at = 0; at < base64.length; at += STEP_LENGTH) {
    const part = Buffer.from(base64.slice(at, at + STEP_LENGTH), "base64");
    bytes.set(part, length);
    length += part.length;
    yield;
  }
  return bytes.subarray(0, length);
}

function unreadable(expected: string): GatewayError {
  return new GatewayError("upstream", `Cannot read the upstream's image: ${expected}`, { final: true });
}

/** Reads the body of an edit within the operator's limits. */
import { GatewayError } from "../errors.ts";
import { bodyLimits } from "../server/body.ts";
import type { RouteContext } from "../server/router.ts";
import { readMultipart } from "./multipart.ts";

/** Longest text field, in bytes. The longest prompt takes 125 KiB. */
const MAX_TEXT_BYTES = 256 * 1024;

/**
 * Reads the form. Its bytes count against the memory for request bodies until the request has ended.
 * @throws {GatewayError} `invalid` for any other body, and the errors of `readMultipart`
 */
export async function readForm(
  request: Request,
  { gateway, caller, body }: RouteContext,
): Promise<FormData> {
  if (!/^\s*multipart\/form-data\b/i.test(request.headers.get("content-type") ?? "")) {
    throw new GatewayError(
      "invalid",
      "Cannot read the body: expected multipart/form-data with the image as a file in the field `image`; " +
        "JSON and image URLs are not supported here",
    );
  }
  const { uploads } = gateway.config.images;
  const form = await readMultipart(request, {
    fileBytes: uploads.max_file_bytes,
    totalBytes: uploads.max_upload_bytes,
    parts: uploads.max_parts,
    textBytes: MAX_TEXT_BYTES,
    pace: bodyLimits(gateway.config),
    gate: gateway.uploads,
    keyId: caller?.keyId,
    take: (bytes) => body.reserve(bytes),
  });
  body.arrived();
  return form;
}

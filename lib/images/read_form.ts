/** The body of an edit: a form with files, read within the operator's limits. */
import { GatewayError } from "../errors.ts";
import { bodyLimits } from "../server/body_limits.ts";
import type { RouteContext } from "../server/router.ts";
import { readMultipart } from "./multipart.ts";

/** Longest field of text: the longest prompt takes 125 KiB. */
const TEXT_BYTES = 256 * 1024;

/**
 * Reads the form. Its bytes count as a request body's until there is an answer.
 * @throws {GatewayError} `invalid` for any other kind of body, and what `readMultipart` throws
 */
export async function readForm(
  request: Request,
  { gateway, reserve, arrived }: RouteContext,
): Promise<FormData> {
  if (!/^\s*multipart\/form-data\b/i.test(request.headers.get("content-type") ?? "")) {
    throw new GatewayError(
      "invalid",
      "Cannot read the body: expected multipart/form-data with the image as a file in the field `image`; " +
        "JSON and URLs of images are not taken here",
    );
  }
  const { uploads } = gateway.config.images;
  const form = await readMultipart(request, {
    fileBytes: uploads.max_file_bytes,
    totalBytes: uploads.max_upload_bytes,
    parts: uploads.max_parts,
    textBytes: TEXT_BYTES,
    pace: bodyLimits(gateway.config),
    gate: gateway.uploads,
    take: reserve,
  });
  arrived?.();
  return form;
}

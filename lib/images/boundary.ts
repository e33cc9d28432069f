/** Reads the boundary of a form from its Content-Type. */
import { GatewayError } from "../errors.ts";
import { readParameters } from "./header_parameters.ts";

/** RFC 2046, section 5.1.1: 1 to 70 characters, not ending with a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;

/**
 * Returns the boundary of a form.
 * @throws {GatewayError} `unsupported_media_type` for anything but a form, `invalid` for a missing or malformed boundary
 */
export function readBoundary(headers: Headers): string {
  const type = headers.get("content-type") ?? "";
  if (!/^multipart\/form-data[ \t]*(?:;|$)/i.test(type)) {
    throw new GatewayError(
      "unsupported_media_type",
      "Cannot read this body: send a form, with Content-Type: multipart/form-data",
    );
  }
  const boundary = boundaryOf(type);
  if (boundary === undefined) throw invalid("its Content-Type has no boundary");
  if (!BOUNDARY.test(boundary)) throw invalid("its boundary is not 1 to 70 of the characters that RFC 2046 allows");
  return boundary;
}

function boundaryOf(type: string): string | undefined {
  try {
    return readParameters(type).get("boundary");
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw invalid(`${cause.message} in its Content-Type`, cause);
  }
}

function invalid(why: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid", `Cannot read the form: ${why}`, { cause });
}

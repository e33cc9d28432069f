/** Reads the `Idempotency-Key` header. */
import { GatewayError } from "../errors.ts";

/** Printable ASCII, as in any header. */
const KEY = /^[ -~]{1,255}$/;

/**
 * Reads the key; `undefined` without the header. A stream cannot be replayed, so a request for a stream with a key is
 * refused.
 * @throws {GatewayError} `invalid`
 */
export function readIdempotencyKey(headers: Headers, { stream }: { stream: boolean }): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!KEY.test(key)) {
    throw new GatewayError("invalid", "Cannot use this Idempotency-Key: expected 1 to 255 printable ASCII characters");
  }
  if (stream) {
    throw new GatewayError("invalid", "Cannot use an Idempotency-Key with stream: omit one of them", {
      param: "stream",
    });
  }
  return key;
}

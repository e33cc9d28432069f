/** The header by which a client names a request. */
import { GatewayError } from "../errors.ts";

/** Among the visible characters and the space, as in a header. */
const KEY = /^[ -~]{1,255}$/;

/**
 * The client's name for a request; `undefined` where it gives none. A stream cannot be given again, so that a key is
 * refused there rather than ignored.
 * @throws {GatewayError} `invalid`
 */
export function readIdempotencyKey(headers: Headers, { stream }: { stream: boolean }): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!KEY.test(key)) {
    throw new GatewayError("invalid", "Cannot use this Idempotency-Key: expected 1 to 255 printable ASCII characters");
  }
  if (stream) {
    throw new GatewayError("invalid", "Cannot use an Idempotency-Key with stream: leave one of them out", {
      param: "stream",
    });
  }
  return key;
}

/** Reads what the headers declare about a body, before the body is read. */
import { GatewayError } from "../errors.ts";
import type { HeaderValues } from "./head.ts";

/** Refuses compressed bodies. @throws {GatewayError} `unsupported_media_type` */
export function checkEncoding(headers: HeaderValues): void {
  const encoding = headers.get("content-encoding");
  if (encoding !== null && !/^\s*(identity)?\s*$/i.test(encoding)) {
    throw new GatewayError("unsupported_media_type", "Cannot read a compressed body: send it without Content-Encoding");
  }
}

/**
 * Refuses transfer codings other than chunked: the gateway does not decode them.
 * @throws {GatewayError} `unsupported_media_type`
 */
export function checkTransfer(headers: HeaderValues): void {
  const transfer = headers.get("transfer-encoding");
  if (transfer === null || /^\s*chunked\s*$/i.test(transfer)) return;
  throw new GatewayError("unsupported_media_type", "Cannot read this Transfer-Encoding: expected chunked or none", {
    headers: { connection: "close" },
  });
}

/** Bytes that the client has announced; `undefined` where it does not say. */
export function declaredLength(headers: HeaderValues): number | undefined {
  const length = headers.get("content-length");
  return length === null || !/^\d+$/.test(length) ? undefined : Number(length);
}

/** Error for a body above the limit. It closes the connection, since the rest of the body is never read. */
export function bodyTooLarge(limitBytes: number): GatewayError {
  return new GatewayError("too_large", `Cannot read the body: it has more than ${limitBytes} bytes`, {
    headers: { connection: "close" },
  });
}

/** What the headers say about a body before any of it is read. */
import { GatewayError } from "../errors.ts";
import type { HeaderValues } from "./head.ts";

/** Refuses compressed bodies. @throws {GatewayError} `unsupported_media_type` */
export function checkEncoding(headers: HeaderValues): void {
  const encoding = headers.get("content-encoding");
  if (encoding !== null && !/^\s*(identity)?\s*$/i.test(encoding)) {
    throw new GatewayError("unsupported_media_type", "Cannot read a compressed body: send it without Content-Encoding");
  }
}

/** Refuses transfer codings beside chunked, which nobody here undoes. @throws {GatewayError} `unsupported_media_type` */
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

/** A body of more bytes than allowed. The connection ends with the answer: nobody reads the rest. */
export function bodyTooLarge(limitBytes: number): GatewayError {
  return new GatewayError("too_large", `Cannot read the body: it has more than ${limitBytes} bytes`, {
    headers: { connection: "close" },
  });
}

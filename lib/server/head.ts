/** The head of a request: its size limits, the characters of its headers, and the declared length of its body. */
import { GatewayError } from "../errors.ts";

/** Headers of one request. Two of one name are one here. */
export const MAX_HEADERS = 100;

/** Most characters of all header names and values, with separators. */
export const MAX_HEAD_BYTES = 16_384;

/** Bytes around a header on the wire: `: ` and the line end. */
const BYTES_AROUND = 4;

const VISIBLE = /^[\t\x20-\x7e]*$/;

/** Headers that the gateway reads. All others may have any value: they are neither read nor passed on. */
const READ: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "x-goog-api-key",
  "content-type",
  "content-encoding",
  "content-length",
  "transfer-encoding",
  "idempotency-key",
  "anthropic-version",
  "anthropic-beta",
  "if-none-match",
  "origin",
  "upgrade",
  "x-forwarded-for",
]);

/** Header values by lower-case name. */
export type HeaderValues = Pick<Headers, "get">;

/**
 * The headers of one request, taken from the runtime once: to go through them all costs 15,000 instructions, and each that is
 * asked for 1,500 more.
 */
export class Head implements HeaderValues {
  readonly #values = new Map<string, string>();
  #count = 0;
  #bytes = 0;
  /** A header that the gateway reads, with a value that it cannot read. */
  #unreadable: string | undefined;

  constructor(headers: Headers) {
    headers.forEach((value, name) => {
      this.#values.set(name, value);
      if (READ.has(name) && !VISIBLE.test(value)) this.#unreadable ??= name;
      this.#count++;
      this.#bytes += name.length + value.length + BYTES_AROUND;
    });
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }

  /**
   * Checks the limits of the head. The runtime accepts larger heads.
   * @throws {GatewayError} `invalid`
   */
  check(): void {
    if (this.#unreadable !== undefined) {
      throw new GatewayError(
        "invalid",
        `Cannot read the header "${this.#unreadable}": expected visible ASCII characters`,
      );
    }
    if (this.#count > MAX_HEADERS) throw tooMuch(`it has more than ${MAX_HEADERS} headers`);
    if (this.#bytes > MAX_HEAD_BYTES) throw tooMuch(`it has more than ${MAX_HEAD_BYTES} bytes`);
  }
}

/** The error closes the connection: the client is at fault, so another request from it is not awaited. */
function tooMuch(what: string): GatewayError {
  return new GatewayError("invalid", `Cannot read the head of the request: ${what}`, {
    headers: { connection: "close" },
  });
}

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

/** Returns the length of the body by its `content-length`; `undefined` without this header. */
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

/**
 * Reads and checks the head of a request: size limits, characters of headers, encodings, and the length of the body.
 */
import { GatewayError } from "../errors.ts";

/** Maximum number of headers of one request. Several headers of one name count as one. */
export const MAX_HEADERS = 100;

/** Maximum number of bytes of all header names and values, with separators. */
export const MAX_HEAD_BYTES = 16_384;

/** Bytes of a header on the wire besides its name and value: `: ` and the line end. */
const SEPARATOR_BYTES = 4;

const VISIBLE_ASCII = /^[\t\x20-\x7e]*$/;

/** Headers whose values the gateway reads. All others may have any value: they are neither read nor passed on. */
const READ_HEADERS: ReadonlySet<string> = new Set([
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

/** The parts of a request that hold its host and its target. */
export interface Addressed {
  readonly url: string;
  readonly headers: HeaderValues;
}

/**
 * Returns the host that a request names, with the port if it names one. HTTP/2 has no `Host` header: its authority is
 * only in the URL. The text is unchecked, and empty if the header is.
 */
export function hostOf({ url, headers }: Addressed): string {
  return headers.get("host") ?? /^https?:\/\/([^/]*)/i.exec(url)?.[1] ?? "";
}

/**
 * The headers of one request, copied from the runtime once. Copying costs 15,000 instructions; each further read from
 * the runtime would cost 1,500.
 */
export class Head implements HeaderValues {
  readonly #values = new Map<string, string>();
  #count = 0;
  #bytes = 0;
  /** Name of the first header that the gateway must read but cannot. */
  #unreadable: string | undefined;

  constructor(headers: Headers) {
    headers.forEach((value, name) => {
      this.#values.set(name, value);
      if (READ_HEADERS.has(name) && !VISIBLE_ASCII.test(value)) this.#unreadable ??= name;
      this.#count++;
      this.#bytes += name.length + value.length + SEPARATOR_BYTES;
    });
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }

  /**
   * Checks the size limits, which are lower than those of the runtime, and the characters of the headers that are read.
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

/** Returns the error for a head that is too large. It closes the connection. */
function tooMuch(what: string): GatewayError {
  return new GatewayError("invalid", `Cannot read the head of the request: ${what}`, {
    headers: { connection: "close" },
  });
}

/**
 * Refuses compressed bodies, and transfer codings other than chunked: the gateway does not decode them.
 * @throws {GatewayError} `unsupported_media_type`
 */
export function checkCodings(headers: HeaderValues): void {
  const encoding = headers.get("content-encoding");
  if (encoding !== null && !/^\s*(identity)?\s*$/i.test(encoding)) {
    throw new GatewayError("unsupported_media_type", "Cannot read a compressed body: send it without Content-Encoding");
  }
  const transfer = headers.get("transfer-encoding");
  if (transfer === null || /^\s*chunked\s*$/i.test(transfer)) return;
  throw new GatewayError("unsupported_media_type", "Cannot read this Transfer-Encoding: expected chunked or none", {
    headers: { connection: "close" },
  });
}

/** Returns the body's length from `content-length`; `undefined` if the header is missing or malformed. */
export function declaredLength(headers: HeaderValues): number | undefined {
  const length = headers.get("content-length");
  return length === null || !/^\d+$/.test(length) ? undefined : Number(length);
}

/** Returns the error for a body above the limit. It closes the connection, because the rest of the body is not read. */
export function bodyTooLarge(limitBytes: number): GatewayError {
  return new GatewayError("too_large", `Cannot read the body: it has more than ${limitBytes} bytes`, {
    headers: { connection: "close" },
  });
}

/** The head of a request: how much of it there may be, and what the headers that are read may hold. */
import { GatewayError } from "../errors.ts";

/** Headers of one request. Two of one name are one here. */
const MOST_HEADERS = 100;

/** Characters of all names and values, with what stands between them. */
const MOST_HEAD_BYTES = 16_384;

/** What stands around a header on the wire: `: ` and the end of the line. */
const BYTES_AROUND = 4;

const VISIBLE = /^[\t\x20-\x7e]*$/;

/** Headers that the gateway reads. Others may hold what they like: nobody looks at them, and none is passed on. */
const READ: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
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

/**
 * Bounds the head before anything is made of it. The server itself takes more than this.
 * @throws {GatewayError} `invalid`
 */
export function checkHead(headers: Headers): void {
  let count = 0;
  let bytes = 0;
  headers.forEach((value, name) => {
    count++;
    bytes += name.length + value.length + BYTES_AROUND;
    if (READ.has(name) && !VISIBLE.test(value)) {
      throw new GatewayError("invalid", `Cannot read the header "${name}": expected visible ASCII characters`);
    }
  });
  if (count > MOST_HEADERS) throw tooMuch(`it has more than ${MOST_HEADERS} headers`);
  if (bytes > MOST_HEAD_BYTES) throw tooMuch(`it has more than ${MOST_HEAD_BYTES} bytes`);
}

/** Who sends such a head is not waited for again. */
function tooMuch(what: string): GatewayError {
  return new GatewayError("invalid", `Cannot read the head of the request: ${what}`, {
    headers: { connection: "close" },
  });
}

/** Serializes request heads. */

/** Request line and headers. */
export interface RequestHead {
  method: string;
  /** Path and query. */
  target: string;
  /** Name and port, as in the URL. */
  host: string;
  headers: Readonly<Record<string, string>>;
  /** Length of the body in bytes; absent: it is sent in chunks. */
  bodyBytes?: number;
  /** True: the connection is closed afterwards. */
  closes: boolean;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Anything but control characters, CR and LF among them. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const METHOD = /^[A-Z]+$/;
const TARGET = /^\/[\x21-\x7e]*$/;

/** Headers about framing and the connection, which only this part writes. */
const OWN: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "te",
  "trailer",
  "upgrade",
  "keep-alive",
  "expect",
  "proxy-connection",
]);

/** Writes a head, one character per byte. @throws {TypeError} for values that a head cannot hold */
export function writeHead({ bodyBytes, ...head }: RequestHead): string {
  return writeHeadBegin(head) + writeHeadEnd(bodyBytes);
}

/** All lines but the one about the body's length. @throws {TypeError} as `writeHead` */
export function writeHeadBegin({ method, target, host, headers, closes }: Omit<RequestHead, "bodyBytes">): string {
  if (!METHOD.test(method) || !TARGET.test(target)) throw new TypeError("Cannot write a request: its line is broken");
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new TypeError("Cannot write a request: a header cannot hold this");
    }
    if (OWN.has(name.toLowerCase())) throw new TypeError(`Cannot write a request: "${name}" is not the caller's`);
    head += `${name}: ${value}\r\n`;
  }
  return closes ? `${head}connection: close\r\n` : head;
}

/** The line about the body's length, and the empty line. */
export function writeHeadEnd(bodyBytes: number | undefined): string {
  return bodyBytes === undefined ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyBytes}\r\n\r\n`;
}

/** Writes Latin-1 text into bytes, from `at`. Returns where it ends. */
export function writeLatin1(text: string, bytes: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index++) bytes[at + index] = text.charCodeAt(index);
  return at + text.length;
}

/** The head of a request. */

/** What a request's head says. */
export interface RequestHead {
  method: string;
  /** Path and query, as they go over the wire. */
  target: string;
  /** Name and port, as in the address. */
  host: string;
  headers: Readonly<Record<string, string>>;
  /** How long the body is, in bytes; absent: it goes in chunks. */
  bodyBytes?: number;
  /** Whether the connection is to be closed afterwards. */
  closes: boolean;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Anything but CR, LF, NUL and what else is no text. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const METHOD = /^[A-Z]+$/;
const TARGET = /^\/[\x21-\x7e]*$/;

/** What decides where messages end, and what is about the connection, is said here and nowhere else. */
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

/** Writes a head, one character per byte. @throws {TypeError} where it cannot hold what it is given */
export function writeHead({ bodyBytes, ...head }: RequestHead): string {
  return writeHeadBegin(head) + writeHeadEnd(bodyBytes);
}

/** All lines but the one that tells where the body ends. @throws {TypeError} as `writeHead` */
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

/** That line, and the empty one. */
export function writeHeadEnd(bodyBytes: number | undefined): string {
  return bodyBytes === undefined ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyBytes}\r\n\r\n`;
}

/** Writes such a text into bytes, from `at`. Returns where it ends. */
export function writeLatin1(text: string, bytes: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index++) bytes[at + index] = text.charCodeAt(index);
  return at + text.length;
}

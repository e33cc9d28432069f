/** Requests that two parsers may read differently: where one ends, and whether its body hides another. */

/** One probe. Its own path is `/outer-ID`; the request hidden in it has the path `/inner-ID`. */
export interface Probe {
  name: string;
  text: string;
  /** True if the inner request is one by the rules, and not a part of the outer one. */
  pipelined: boolean;
}

/** Makes a probe for an id. */
type Maker = (id: string) => string;

const inner = (id: string) => `GET /inner-${id} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const outer = (id: string, headers: string, body: string) =>
  `POST /outer-${id} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n${body}`;
const ended = (id: string) => `0\r\n\r\n${inner(id)}`;
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const hidden = (id: string) => `${chunk(inner(id))}0\r\n\r\n`;

/** A length that covers the inner request, and chunks that end before it. */
const withLength = (line: string): Maker => (id) =>
  outer(id, `Content-Length: ${ended(id).length}\r\n${line}`, ended(id));
/** A length that ends before the inner request, and chunks that cover it. */
const withShortLength = (line: string): Maker => (id) => outer(id, `Content-Length: 4\r\n${line}`, hidden(id));
/** Header lines with the length of a body that is the inner request. */
const lengths = (lines: (length: number) => string): Maker => (id) => outer(id, lines(inner(id).length), inner(id));
/** A chunked body in unusual notation, with the inner request after its apparent end. */
const chunks = (body: (id: string) => string): Maker => (id) => outer(id, "Transfer-Encoding: chunked", body(id));

const PIPELINED: Readonly<Record<string, Maker>> = {
  "a body of no bytes, then another request": (id) => outer(id, "Content-Length: 0", inner(id)),
  "chunks that have ended, then another request": chunks(ended),
  "two requests without bodies": (id) => `GET /outer-${id} HTTP/1.1\r\nHost: localhost\r\n\r\n${inner(id)}`,
};

const HIDDEN: Readonly<Record<string, Maker>> = {
  "a request as a body": lengths((length) => `Content-Length: ${length}`),
  "a request as a chunk": chunks(hidden),
  "a request as the body of GET": (id) =>
    `GET /outer-${id} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${inner(id).length}\r\n\r\n${inner(id)}`,
  "a request as a body that is waited for": lengths((length) => `Content-Length: ${length}\r\nExpect: 100-continue`),
  "length before chunks": withLength("Transfer-Encoding: chunked"),
  "length before chunks in capitals": withLength("Transfer-Encoding: CHUNKED"),
  "length before chunks, tab": withLength("Transfer-Encoding:\tchunked"),
  "length before chunks, space before the colon": withLength("Transfer-Encoding : chunked"),
  "length before chunks, folded": withLength("X: y\r\n Transfer-Encoding: chunked"),
  "length before chunks, folded value": withLength("Transfer-Encoding:\r\n chunked"),
  "length before chunks, bare LF": withLength("X: y\nTransfer-Encoding: chunked"),
  "length before chunks, bare CR": withLength("X: y\rTransfer-Encoding: chunked"),
  "length before chunks, NUL": withLength("Transfer-Encoding: \0chunked"),
  "length before chunks, vertical tab": withLength("Transfer-Encoding: \x0bchunked"),
  "length before chunks, in quotes": withLength('Transfer-Encoding: "chunked"'),
  "length before chunks that are none": withLength("Transfer-Encoding: xchunked"),
  "length before chunks, then identity": withLength("Transfer-Encoding: chunked, identity"),
  "length before chunks, identity first": withLength("Transfer-Encoding: identity, chunked"),
  "length before chunks, two codings": withLength("Transfer-Encoding: gzip, chunked"),
  "length before chunks, two lines": withLength("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
  "length before chunks, underscore": withLength("Transfer_Encoding: chunked"),
  "short length and chunks": withShortLength("Transfer-Encoding: chunked"),
  "short length and chunks, space before the colon": withShortLength("Transfer-Encoding : chunked"),
  "short length and chunks that are none": withShortLength("Transfer-Encoding: xchunked"),
  "two lengths": lengths((length) => `Content-Length: ${length}\r\nContent-Length: 0`),
  "two lengths, the other way": lengths((length) => `Content-Length: 0\r\nContent-Length: ${length}`),
  "two lengths in one line": lengths((length) => `Content-Length: 0, ${length}`),
  "a length with a sign": lengths((length) => `Content-Length: +${length}`),
  "a length below nothing": lengths(() => "Content-Length: -1"),
  "a hexadecimal length": lengths((length) => `Content-Length: 0x${length.toString(16)}`),
  "a length with a space before the colon": lengths((length) => `Content-Length : ${length}`),
  "a length without a number": lengths(() => "Content-Length: "),
  "a length beyond 64 bits": lengths((length) => `Content-Length: ${2n ** 64n + BigInt(length)}`),
  "a length after a bare LF": lengths((length) => `Content-Length: 0\nContent-Length: ${length}`),
  "a chunk's size with a prefix": chunks((id) => `0x0\r\n\r\n${inner(id)}`),
  "a chunk's size below nothing": chunks((id) => `-1\r\n\r\n${inner(id)}`),
  "a chunk's size beyond 64 bits": chunks((id) => `${"f".repeat(16)}0\r\n${inner(id)}`),
  "chunks with bare LF": chunks((id) => `1\nx\n0\n\n${inner(id)}`),
  "a chunk longer than its size": chunks((id) => `1\r\nxx${inner(id)}0\r\n\r\n`),
  "a chunk's extension with a bare LF": chunks((id) => `1;a\nb\r\nx\r\n1\r\n${inner(id)}`),
  "a space before the first header": (id) =>
    `POST /outer-${id} HTTP/1.1\r\n Host: localhost\r\nContent-Length: ${inner(id).length}\r\n\r\n${inner(id)}`,
  "chunks in HTTP/1.0": (id) =>
    `POST /outer-${id} HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n` +
    hidden(id),
};

/** All probes, each with ids that begin with a prefix. */
export function probes(prefix: string): (Probe & { id: string })[] {
  return [...Object.entries(PIPELINED), ...Object.entries(HIDDEN)].map(([name, make], at) => {
    const id = `${prefix}${at}`;
    return { id, name, text: make(id), pipelined: Object.hasOwn(PIPELINED, name) };
  });
}

/** The consecutive answers received over a connection; `rest` is an incomplete remainder. */
export function readAnswers(text: string): { answers: { status: number; head: string }[]; rest: string } {
  const answers: { status: number; head: string }[] = [];
  let rest = text;
  while (rest !== "") {
    const [, head = "", status = ""] = /^(HTTP\/1\.[01] (\d{3})[^]*?\r\n\r\n)/.exec(rest) ?? [];
    if (head === "") return { answers, rest };
    const body = rest.slice(head.length);
    const length = bodyLength(head, body);
    if (length === undefined || length > body.length) return { answers, rest };
    // 1xx is an interim answer.
    if (!status.startsWith("1")) answers.push({ status: Number(status), head });
    rest = body.slice(length);
  }
  return { answers, rest };
}

/** `undefined`: the end of a chunked body is not there. */
function bodyLength(head: string, body: string): number | undefined {
  if (/^transfer-encoding: *chunked/im.test(head)) {
    const end = /(?:^|\r\n)0\r\n\r\n/.exec(body);
    return end === null ? undefined : end.index + end[0].length;
  }
  return Number(
    /^content-length: *(\d+)/im.exec(head)?.[1] ?? (/^HTTP\/1\.[01] (1|204|304)/.test(head) ? 0 : body.length),
  );
}

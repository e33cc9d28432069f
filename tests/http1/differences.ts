/** Answers that `fetch` takes and our HTTP/1.1 client refuses or reads in another way. */

/** One difference. */
export interface Difference {
  name: string;
  /** The difference, and the reason for ours. */
  why: string;
  wire: string;
  /** Result of `fetch` on the newest runtime: a status and a body, or an error. */
  fetch: { status: number; body: string } | "error";
  /** Our result. */
  http1: { status: number; body: string } | "error";
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const hello = { status: 200, body: "hello" } as const;
const same = (fetch: Difference["fetch"]): Pick<Difference, "fetch" | "http1"> => ({ fetch, http1: "error" });

/** All known differences. The test beside proves that everything else is the same. */
export const DIFFERENCES: readonly Difference[] = [
  {
    name: "a length and a transfer coding",
    why: "RFC 9112, 6.3: what two readers take for two lengths may hide an answer",
    wire: `${OK}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "bare LF at the ends of lines",
    why: "RFC 9112, 2.2 allows readers to take it; those before and behind may not",
    wire: "HTTP/1.1 200 OK\ncontent-length: 5\n\nhello",
    ...same(hello),
  },
  {
    name: "a transfer coding beside chunked",
    why: "Nobody asked for one, and nothing here would undo it",
    wire: `${OK}transfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "space after a chunk's size",
    why: "It is not in the grammar; what is in a size must not be a matter of taste",
    wire: `${CHUNKED}5  \r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "leading zeros without a bound, in a chunk's size",
    why: "13 digits are enough for every size",
    wire: `${CHUNKED}00000000000005\r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "a long extension of a chunk",
    why: "What nobody reads is bounded at 1 KiB a chunk",
    wire: `${CHUNKED}5;${"a".repeat(2_000)}\r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "an invalid length of an answer without a body",
    why: "It is not in the grammar, and readers that end a line there see another body",
    wire: `${CHUNKED}5;a\0\r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "a length that is none, of an answer without a body",
    why: "RFC 9112, 6.3: it is an error of the connection, whatever the status",
    wire: "HTTP/1.1 304 X\r\ncontent-length: : 0\r\n\r\n",
    ...same({ status: 304, body: "" }),
  },
  {
    name: "a coding unknown to HTTP/1.1",
    why: "Where such a body ends is a guess",
    wire: `${OK}transfer-encoding: identity\r\n\r\nhello`,
    ...same(hello),
  },
  {
    name: "chunked twice",
    why: "It means two layers of chunks, or one line too many",
    wire: `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ...same(hello),
  },
  {
    name: "a change of protocol",
    why: "Nobody asked for one",
    wire: "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
    ...same({ status: 101, body: "" }),
  },
  {
    name: "more than 100 headers",
    why: "256 are few enough",
    wire: `${OK}${"a: b\r\n".repeat(150)}content-length: 5\r\n\r\nhello`,
    fetch: "error",
    http1: hello,
  },
  {
    name: "a line of 20,000 bytes",
    why: "Lines are bounded at 16 KiB",
    wire: `${OK}a: ${"x".repeat(20_000)}\r\ncontent-length: 5\r\n\r\nhello`,
    ...same(hello),
  },
  {
    name: "an empty line before the head",
    why: "It is what is left of an answer that was longer than it said",
    wire: `\r\n${OK}content-length: 5\r\n\r\nhello`,
    ...same(hello),
  },
  {
    name: "a body with 205",
    why: "RFC 9110, 15.3.6 forbids it; where it is there, it is read as it is framed",
    wire: "HTTP/1.1 205 X\r\ncontent-length: 5\r\n\r\nhello",
    fetch: { status: 205, body: "" },
    http1: { status: 205, body: "hello" },
  },
  {
    name: "a status above 599",
    why: "Nobody knows what it means",
    wire: `HTTP/1.1 799 X\r\ncontent-length: 5\r\n\r\nhello`,
    ...same({ status: 799, body: "hello" }),
  },
];

/** Finds the end of a response body, and decides if its connection can carry another request. */
import { MalformedResponse } from "./errors.ts";
import type { ResponseHead } from "./response_head.ts";

/** The marker of a body's end. */
export type BodyFraming =
  | { kind: "none" }
  /** After this many bytes. */
  | { kind: "length"; bytes: number }
  | { kind: "chunked" }
  /** At the end of the connection. */
  | { kind: "close" };

/** Body framing and reuse of the connection, from a response head. */
export interface ResponseFraming {
  framing: BodyFraming;
  /** True where the connection stays open after the response. */
  keeps: boolean;
  /** For how long, in milliseconds, where the peer says so. */
  keepsMs?: number;
}

const NONE: BodyFraming = { kind: "none" };
const CHUNKED: BodyFraming = { kind: "chunked" };
const CLOSE: BodyFraming = { kind: "close" };

/**
 * Reads from a final head what follows it.
 * @throws {MalformedResponse} where the head is ambiguous, or says it in a way that not every parser understands
 */
export function readFraming(head: ResponseHead, method: string): ResponseFraming {
  const coding = head.headers["transfer-encoding"];
  const length = readLength(head.headers["content-length"]);
  if (coding !== undefined) {
    if (length !== undefined) throw new MalformedResponse("The head has a length and a transfer coding");
    if (head.minor === 0) throw new MalformedResponse("The head of an HTTP/1.0 answer has a transfer coding");
    if (coding.toLowerCase() !== "chunked") throw new MalformedResponse("The transfer coding is not chunked");
  }
  const keeps = keepsOpen(head);
  const keepsMs = keeps ? readKeepAlive(head.headers["keep-alive"]) : undefined;
  const { status } = head;
  if (method === "HEAD" || status === 204 || status === 304) {
    // A 204 that announces a body may send one.
    const isClear = status !== 204 || (coding === undefined && (length ?? 0) === 0);
    return { framing: NONE, keeps: keeps && isClear, keepsMs };
  }
  if (coding !== undefined) return { framing: CHUNKED, keeps, keepsMs };
  if (length === undefined) return { framing: CLOSE, keeps: false };
  return { framing: length === 0 ? NONE : { kind: "length", bytes: length }, keeps, keepsMs };
}

/** Repeated equal lengths count as one (RFC 9112, section 6.3). */
function readLength(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  const [first = "", ...others] = value.split(",").map((text) => text.replace(/^[ \t]+|[ \t]+$/g, ""));
  if (others.some((other) => other !== first)) throw new MalformedResponse("The head has two lengths");
  const length = /^\d{1,16}$/.test(first) ? Number(first) : NaN;
  if (!Number.isSafeInteger(length)) throw new MalformedResponse("The length is not a number of bytes");
  return length;
}

function keepsOpen(head: ResponseHead): boolean {
  const said = head.headers.connection;
  if (said === undefined) return head.minor === 1;
  const options = said.toLowerCase().split(",").map((option) => option.trim());
  if (options.includes("close")) return false;
  return head.minor === 1 || options.includes("keep-alive");
}

function readKeepAlive(value: string | undefined): number | undefined {
  const seconds = value === undefined ? undefined : /(?:^|[,; ])timeout=(\d{1,6})(?:$|[,; ])/i.exec(value)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

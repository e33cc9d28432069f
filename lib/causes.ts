/**
 * Names the fault behind a network or disk error, such as "connection refused". Logs and clients get these names
 * instead of the runtime's messages, which may contain a prompt or a key.
 */
import { messageOf, nameOf } from "./errors.ts";

/** Faults by patterns of error names, codes and messages. The first pattern that matches counts. */
const FAULTS: readonly (readonly [pattern: RegExp, fault: string])[] = [
  // Errors of Postgres, by their SQLSTATE.
  [/^PostgresError (?:28|55000)/, "login refused"],
  [/^PostgresError 3D000/, "no such database"],
  [/^PostgresError 42501/, "permission missing"],
  // Postgres refuses new connections with this text if its disk is full.
  [/^PostgresError (?:53100|XX000 could not write init file)/, "disk full"],
  [/^PostgresError 53300/, "too many connections"],
  [/^PostgresError 57P0[123]/, "server starting or stopping"],
  [/^PostgresError (?:55P03|57014)/, "timeout"],
  [/BlockedAddress/, "address not allowed"],
  [/ENOTFOUND|EAI_|failed to lookup|dns error|has no address/i, "name not found"],
  [/NotValidForName|not valid for name|ERR_TLS_CERT_ALTNAME/i, "certificate of another host"],
  [
    /certificate (?:has )?expired|CERT_HAS_EXPIRED|not ?valid ?yet|\bExpired\b/i,
    "certificate expired or not yet valid",
  ],
  [
    /UnknownIssuer|self.signed|unable to (?:get|verify)|CaUsedAsEndEntity|invalid peer certificate/i,
    "certificate not trusted",
  ],
  [/NoApplicationProtocol|does not offer HTTP\/1\.1/, "no common version of HTTP"],
  [
    /ProtocolVersion|PeerIncompatible|UnsupportedVersion|NoCipherSuitesInCommon|HandshakeFailure/,
    "no common version of TLS",
  ],
  [/InvalidContentType|InvalidMessage|corrupt message|received fatal alert|AlertReceived/i, "no proper TLS"],
  [/ConnectionRefused|ECONNREFUSED|connection refused/i, "connection refused"],
  [/ConnectionReset|ECONNRESET|EPIPE|BrokenPipe|reset by peer|broken pipe/i, "connection reset"],
  [
    /UnexpectedEof|ConnectionEnded|CONNECTION_(?:CLOSED|ENDED|DESTROYED)|ConnectionAborted|unexpected end of file|close_notify/i,
    "connection ended",
  ],
  [/EHOSTUNREACH|ENETUNREACH|no route to host|network is unreachable/i, "network unreachable"],
  [/TimedOut|ETIMEDOUT|CONNECT_TIMEOUT|TimeoutError|NoAnswer|timed out/i, "timeout"],
  [/EMFILE|ENFILE|too many open files/i, "too many open files"],
  [/ENOSPC|no space left|database or disk is full|EDQUOT|quota exceeded/i, "disk full"],
  [/journal is full/, "journal full"],
  [/EROFS|read-only (?:file system|transaction)|readonly database/i, "read-only"],
  [/EACCES|EPERM|PermissionDenied|permission denied|NotCapable|unable to open database file/i, "permission missing"],
  [/was deleted or replaced/, "file deleted or replaced"],
  [/disk I\/O error|\bEIO\b/i, "disk failed"],
  [/database (?:table )?is locked/i, "database locked"],
  [/database disk image is malformed|file is not a database/i, "database damaged"],
];

/** Number of errors of a chain of causes that are examined. */
const MAX_CAUSE_DEPTH = 5;

/** Returns the fault behind a thrown value; `undefined` if it is not a known fault of the network or the disk. */
export function faultOf(thrown: unknown): string | undefined {
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSE_DEPTH && error instanceof Error; depth++) {
    const text = `${error.name} ${"code" in error ? String(error.code) : ""} ${error.message}`;
    const match = FAULTS.find(([pattern]) => pattern.test(text));
    if (match !== undefined) return match[1];
    error = error.cause;
  }
  return undefined;
}

/** Returns the code of an error, such as `ECONNREFUSED` or `57P01`; `undefined` if it has none. */
export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Returns the facts of a thrown value for the log: its name, and its code and fault if it has them. */
export function describeFailure(thrown: unknown): { cause: string; code?: string; fault?: string } {
  const [code, fault] = [codeOf(thrown), faultOf(thrown)];
  return {
    cause: nameOf(thrown),
    ...(code !== undefined && { code }),
    ...(fault !== undefined && { fault }),
  };
}

/** Returns the message of an error and of its cause, in one line. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const message = messageOf(error);
  const { cause } = error;
  const text = cause instanceof Error && !message.includes(cause.message) ? `${message}: ${messageOf(cause)}` : message;
  return text.replaceAll(/\s+/g, " ");
}

/** Returns the path that an error of the file system names; `undefined` for any other value. */
export function pathOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? /\(os error \d+\): \w+ '([^']+)'/.exec(thrown.message)?.[1] : undefined;
}

/** Describes an error of Redis in one word, without addresses or replies: `ECONNREFUSED`, `READONLY`, `closed`. */
export function redisWordOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const word = codeOf(error) ?? /^[A-Z]{2,}(?= )/.exec(error.message)?.[0];
  // The client's own errors without a code are about a connection that is closed.
  return word ?? (error.name === "Error" ? "closed" : error.name);
}

/**
 * Returns the name, kind and stack of an exception for the log. The message is left out, because engines quote their
 * input in it, which may be a prompt or a key.
 */
export function describeCause(cause: unknown): { cause?: string; fault?: string; path?: string; stack?: string } {
  if (cause === undefined) return {};
  // A string instead of an error is text of an upstream.
  if (!(cause instanceof Error)) return { cause: "Error" };
  const [fault, path] = [faultOf(cause), pathOf(cause)];
  const frames = cause.stack?.split("\n").filter((line) => /^ {4}at /.test(line)).slice(0, 8);
  return {
    cause: cause.name,
    ...(fault !== undefined && { fault }),
    ...(path !== undefined && { path }),
    ...(frames !== undefined && { stack: frames.map((line) => line.trim()).join(" | ") }),
  };
}

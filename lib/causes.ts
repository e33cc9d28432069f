/** Classifies network and disk errors. The runtime's messages are not used, since they may contain a prompt or a key. */

/** Faults by what the runtime, its drivers and the system say. The first that fits counts. */
const FAULTS: readonly (readonly [pattern: RegExp, fault: string])[] = [
  [/BlockedAddress/, "address not allowed"],
  [/ENOTFOUND|EAI_|failed to lookup|dns error|has no address/i, "name not found"],
  [/NotValidForName|not valid for name|ERR_TLS_CERT_ALTNAME/i, "certificate of another host"],
  [/\bExpired\b|certificate has expired|CERT_HAS_EXPIRED|NotValidYet/, "certificate expired or not yet valid"],
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
  [/UnexpectedEof|ConnectionEnded|ConnectionAborted|unexpected end of file|close_notify/i, "connection ended"],
  [/EHOSTUNREACH|ENETUNREACH|no route to host|network is unreachable/i, "network unreachable"],
  [/TimedOut|ETIMEDOUT|TimeoutError|timed out/i, "timeout"],
  [/ENOSPC|no space left|database or disk is full|EDQUOT|quota exceeded/i, "disk full"],
  [/EROFS|read-only file system|readonly database/i, "read-only"],
  [/EACCES|EPERM|PermissionDenied|permission denied|NotCapable|unable to open database file/i, "permission missing"],
  [/disk I\/O error|\bEIO\b/i, "disk failed"],
  [/database (?:table )?is locked/i, "database locked"],
  [/database disk image is malformed|file is not a database/i, "database damaged"],
];

/** Most causes of causes that are looked at. */
const DEPTH = 5;

/** Finds the fault behind a thrown value; `undefined` if it is neither of the network nor of the disk. */
export function faultOf(thrown: unknown): string | undefined {
  let error = thrown;
  for (let depth = 0; depth < DEPTH && error instanceof Error; depth++) {
    const text = `${error.name} ${"code" in error ? String(error.code) : ""} ${error.message}`;
    const found = FAULTS.find(([pattern]) => pattern.test(text));
    if (found !== undefined) return found[1];
    error = error.cause;
  }
  return undefined;
}

/** The path that an error of the file system names. */
export function pathOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? /\(os error \d+\): \w+ '([^']+)'/.exec(thrown.message)?.[1] : undefined;
}

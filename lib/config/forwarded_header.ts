/** The schema of `forward_headers`: which response headers of an upstream may be passed on to clients. */
import { z } from "zod";

/** Prefixes of headers that only the gateway or its connections may set. */
const OWN_PREFIXES = ["access-control-", "proxy-", "sec-", "set-cookie", "x-sluice-"];

/** Headers of one connection (RFC 9110, section 7.6.1), and those that describe the gateway's own response. */
const OWN_NAMES =
  `allow alt-svc cache-control connection content-disposition content-encoding content-length content-range
  content-type date etag keep-alive location retry-after retry-after-ms server strict-transport-security te trailer
  transfer-encoding upgrade vary www-authenticate x-accel-buffering x-should-retry`.split(/\s+/);

/** Returns a header, or a prefix of headers, that a pattern matches but must not. */
function forbiddenHeader(pattern: string): string | undefined {
  if (!pattern.endsWith("*")) {
    const prefix = OWN_PREFIXES.find((prefix) => pattern.startsWith(prefix));
    return prefix !== undefined || OWN_NAMES.includes(pattern) ? pattern : undefined;
  }
  const beginning = pattern.slice(0, -1);
  return OWN_NAMES.find((name) => name.startsWith(beginning)) ??
    OWN_PREFIXES.find((prefix) => prefix.startsWith(beginning) || beginning.startsWith(prefix));
}

/** A lowercase header name, or a prefix followed by `*`. */
export const forwardedHeaderSchema = z.string().max(128).regex(/^[a-z0-9][a-z0-9_-]*\*?$/, {
  error: 'Expected a header name in lower case, or its beginning and *, such as "x-ratelimit-*"',
  abort: true,
}).refine((pattern) => forbiddenHeader(pattern) === undefined, {
  error: ({ input }) => `Cannot forward ${forbiddenHeader(String(input))}: the gateway or its connection sets it`,
});

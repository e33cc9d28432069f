/** Response headers of an upstream that are passed on to clients: `forward_headers` of the configuration. */
import type { HeaderFilter, ResponseHeader } from "../http1/mod.ts";
import { redactSecrets } from "../redact.ts";
import type { Incoming } from "./transport.ts";

/** The header that an upstream's request id is passed on in: the gateway's answers have ids of their own. */
const UPSTREAM_REQUEST_ID = "x-sluice-upstream-request-id";

/** Names of an upstream's request id, those of OpenAI first. */
const REQUEST_IDS = ["x-request-id", "request-id"] as const;

/** Makes the test of header names in lower case for patterns. */
export function matchHeaders(patterns: readonly string[]): HeaderFilter {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const prefixes = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

/** The headers of an answer for the client, without secrets. */
export function forwardedHeaders(
  incoming: Pick<Incoming, "header" | "others">,
  forwards: HeaderFilter,
): ResponseHeader[] {
  const headers = (incoming.others ?? []).map(([name, value]): ResponseHeader => [name, redactSecrets(value)]);
  const idName = REQUEST_IDS.find((name) => forwards(name) && incoming.header(name) !== null);
  if (idName !== undefined) headers.push([UPSTREAM_REQUEST_ID, redactSecrets(incoming.header(idName) ?? "")]);
  return headers;
}

/** Lists the headers that the gateway reads and sets. docs/reference/headers.md is generated from it. */

/** A response header. */
interface ResponseHeader {
  /** Meaning of the header, for the documentation. */
  readonly about: string;
  /** True if pages of listed origins may read it. */
  readonly isExposed?: true;
}

/** Request headers that the gateway reads, by name, with their meaning. No other header is read or passed on. */
export const REQUEST_HEADERS = {
  "authorization": "`Bearer KEY`: the API key, or the admin key under /admin and for /metrics",
  "x-api-key": "The API key under /anthropic. It takes precedence over `authorization`",
  "x-goog-api-key":
    "The API key under /v1beta. It takes precedence over `key` in the query, and that over `authorization`",
  "content-type": "`application/json`, or `multipart/form-data` for image edits",
  "content-encoding": "Compression of a JSON body: `gzip` or `deflate`",
  "content-length": "Size of the body. A body that is too large is refused before it is read",
  "transfer-encoding": "Only `chunked` is accepted",
  "anthropic-version": "Required under /anthropic/v1/messages: `2023-06-01` or `2026-10-21`",
  "anthropic-beta": "Anthropic beta features. Those with costs beyond tokens must be permitted by the key's group",
  "idempotency-key": "Image requests: a repeated request with the same value gets the same images",
  "if-none-match": "Catalog and API description: an unchanged answer gets status 304",
  "origin": "Origin of a web page, checked against `cors.origins`",
  "upgrade": "`websocket` on /v1/responses",
  "last-event-id": "Admin API: position at which a stream of requests resumes",
  "cookie": "Session of the console",
  "x-forwarded-for": "Client address, read only from `trusted_proxies`",
  "x-sluice-user": "Id of the end user, 1 to 256 printable ASCII characters, for `sluice usage --by user`",
  "x-sluice-tags": "Up to 10 tags for the request, separated by commas, for `sluice usage --by tag`",
  "x-sluice-show": "`client-address`: the answer shows the address that the gateway sees",
} as const;

/** Response headers by name. Headers of the body and the connection are left out. */
export const RESPONSE_HEADERS = {
  "x-request-id": {
    about: "Id of the request, as in the log and in `sluice explain`. Under /anthropic also as `request-id`",
    isExposed: true,
  },
  "request-id": { about: "The same under /anthropic", isExposed: true },
  "retry-after": { about: "Seconds to wait before a retry, with 429 and 503", isExposed: true },
  "retry-after-ms": { about: "The same in milliseconds", isExposed: true },
  "x-should-retry": { about: "`false`: a retry cannot succeed, although SDKs retry this status", isExposed: true },
  "x-sluice-dropped": {
    about: "Parameters that were not sent, because the upstream or its protocol does not support them",
    isExposed: true,
  },
  "x-sluice-cost": {
    about: "Exact cost of the answer in USD. Streams do not have this header: use the ledger",
    isExposed: true,
  },
  "x-sluice-image-size": { about: "Sizes of the delivered images, one per image", isExposed: true },
  "x-sluice-idempotent-replay": { about: "`true`: these images were made for an earlier request", isExposed: true },
  "x-sluice-max-tokens": {
    about: "Output limit that the gateway set, because the rest of a budget does not cover more",
    isExposed: true,
  },
  "x-sluice-model": { about: "Id of the model that answered or, if none did, was tried last", isExposed: true },
  "x-sluice-upstream": { about: "Name of the upstream that answered or, if none did, was tried last", isExposed: true },
  "x-sluice-attempts": { about: "Number of requests that were sent to upstreams", isExposed: true },
  "x-ratelimit-limit-requests": { about: "The tightest limit of requests per minute", isExposed: true },
  "x-ratelimit-remaining-requests": { about: "Requests left", isExposed: true },
  "x-ratelimit-reset-requests": {
    about: "Time until all requests are available again, such as `12s`",
    isExposed: true,
  },
  "x-ratelimit-limit-tokens": { about: "The tightest limit of tokens per minute", isExposed: true },
  "x-ratelimit-remaining-tokens": { about: "Tokens left", isExposed: true },
  "x-ratelimit-reset-tokens": { about: "Time until all tokens are available again", isExposed: true },
  "anthropic-ratelimit-requests-limit": { about: "Under /anthropic: as `x-ratelimit-limit-requests`", isExposed: true },
  "anthropic-ratelimit-requests-remaining": { about: "Under /anthropic: requests left", isExposed: true },
  "anthropic-ratelimit-requests-reset": { about: "Under /anthropic: time of the reset (RFC 3339)", isExposed: true },
  "anthropic-ratelimit-tokens-limit": { about: "Under /anthropic: as `x-ratelimit-limit-tokens`", isExposed: true },
  "anthropic-ratelimit-tokens-remaining": { about: "Under /anthropic: tokens left", isExposed: true },
  "anthropic-ratelimit-tokens-reset": { about: "Under /anthropic: time of the reset (RFC 3339)", isExposed: true },
  "anthropic-ratelimit-unified-status": {
    about: "Under /anthropic: `allowed` or `rejected`, which Claude Code reads",
    isExposed: true,
  },
  "anthropic-ratelimit-unified-reset": { about: "Under /anthropic: Unix time of the latest reset", isExposed: true },
  "x-sluice-upstream-request-id": {
    about: "Id of the request at the upstream, if `forward_headers` lists `x-request-id` or `request-id`",
    isExposed: true,
  },
  "x-sluice-client-address": { about: "Address of the client, if `x-sluice-show` asked for it" },
  "allow": { about: "Methods that the path supports, with 405" },
  "www-authenticate": { about: "`Bearer`, with 401" },
  "cache-control": { about: "`no-store` or `no-cache`: caches must not reuse an answer without revalidation" },
  "etag": { about: "Version of the catalog or API description, for `if-none-match`" },
  "vary": { about: "Request headers that decide the answer, such as `origin`" },
  "x-accel-buffering": { about: "`no` on streams: nginx forwards each event immediately" },
} as const satisfies Record<string, ResponseHeader>;

/** Names of the response headers that pages of listed origins may read. */
export const EXPOSED_HEADERS: readonly string[] = Object.entries<ResponseHeader>(RESPONSE_HEADERS)
  .filter(([, { isExposed }]) => isExposed === true).map(([name]) => name);

/** Lists the headers that the gateway reads and sets. docs/reference/headers.md is generated from it. */

/** Request headers that the gateway reads, by name, with their meaning. No other header is read or passed on. */
export const REQUEST_HEADERS = {
  "authorization": "`Bearer KEY`: the API key, or the admin key under /admin and for /metrics",
  "x-api-key": "The API key under /anthropic. It takes precedence over `authorization`",
  "x-goog-api-key":
    "The API key under /v1beta. It takes precedence over `key` in the query, and that over `authorization`",
  "content-type": "`application/json`, or `multipart/form-data` for image edits",
  "content-encoding": "Only `identity` is accepted: bodies must not be compressed",
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

/** Response headers that pages of listed origins may read, by name, with their meaning. */
export const EXPOSED_HEADERS = {
  "x-request-id": "Id of the request, as in the log and in `sluice explain`. Under /anthropic also as `request-id`",
  "request-id": "The same under /anthropic",
  "retry-after": "Seconds to wait before a retry, with 429 and 503",
  "retry-after-ms": "The same in milliseconds",
  "x-should-retry": "`false`: a retry cannot succeed, although SDKs retry this status",
  "x-sluice-dropped":
    "Parameters that were not sent, because the upstream or its protocol does not support them, or the key may not use them",
  "x-sluice-cost": "Exact cost of the answer in USD. Streams do not have this header: use the ledger",
  "x-sluice-image-size": "Sizes of the delivered images, one per image",
  "x-sluice-idempotent-replay": "`true`: these images were made for an earlier request",
  "x-sluice-max-tokens": "Output limit that the gateway set, because the rest of a budget does not cover more",
  "x-sluice-model": "Id of the model that answered or, if none did, was tried last",
  "x-sluice-upstream": "Name of the upstream that answered or, if none did, was tried last",
  "x-sluice-attempts": "Number of requests that were sent to upstreams",
  "x-ratelimit-limit-requests": "The tightest limit of requests per minute",
  "x-ratelimit-remaining-requests": "Requests left",
  "x-ratelimit-reset-requests": "Time until all requests are available again, such as `12s`",
  "x-ratelimit-limit-tokens": "The tightest limit of tokens per minute",
  "x-ratelimit-remaining-tokens": "Tokens left",
  "x-ratelimit-reset-tokens": "Time until all tokens are available again",
  "anthropic-ratelimit-requests-limit": "Under /anthropic: as `x-ratelimit-limit-requests`",
  "anthropic-ratelimit-requests-remaining": "Under /anthropic: requests left",
  "anthropic-ratelimit-requests-reset": "Under /anthropic: time of the reset (RFC 3339)",
  "anthropic-ratelimit-tokens-limit": "Under /anthropic: as `x-ratelimit-limit-tokens`",
  "anthropic-ratelimit-tokens-remaining": "Under /anthropic: tokens left",
  "anthropic-ratelimit-tokens-reset": "Under /anthropic: time of the reset (RFC 3339)",
  "anthropic-ratelimit-unified-status": "Under /anthropic: `allowed` or `rejected`, which Claude Code reads",
  "anthropic-ratelimit-unified-reset": "Under /anthropic: Unix time of the latest reset",
  "x-sluice-upstream-request-id":
    "Id of the request at the upstream, if `forward_headers` lists `x-request-id` or `request-id`",
} as const;

/** Response headers by name, with their meaning. Headers of the body and the connection are left out. */
export const RESPONSE_HEADERS = {
  ...EXPOSED_HEADERS,
  "x-sluice-client-address": "Address of the client, if `x-sluice-show` asked for it",
  "allow": "Methods that the path supports, with 405",
  "www-authenticate": "`Bearer`, with 401",
  "cache-control": "`no-store` or `no-cache`: caches must not reuse an answer without revalidation",
  "etag": "Version of the catalog or API description, for `if-none-match`",
  "vary": "Request headers that decide the answer, such as `origin`",
  "x-accel-buffering": "`no` on streams: nginx forwards each event immediately",
} as const;

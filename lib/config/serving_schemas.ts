/** Schemas of the members about serving requests: `resource_limits`, `images`, `responses` and `routing`. */
import { z } from "zod";

/** Schema of `resource_limits`. */
export const resourceLimitsSchema = z.strictObject({
  json_body_bytes: z.number().int().min(1024).default(33_554_432)
    .describe("Largest JSON body, as sent and as decompressed, in bytes. Larger ones get 413"),
  body_budget_bytes: z.number().int().min(1024).default(268_435_456)
    .describe(
      "Memory for the bodies of all concurrent requests, in bytes. A JSON body counts four times its size. One API " +
        "key gets at most three quarters, except for a body that is alone. Requests beyond it get 429",
    ),
  image_request_pixels: z.number().int().min(1_048_576).default(50_331_648)
    .describe(
      "Most pixels of one request to an embedded image model: uploads, mask and the images it asks for. Larger requests " +
        "get 400",
    ),
  image_pixels: z.number().int().min(1_048_576).default(25_165_824)
    .describe(
      "Most pixels in memory of all concurrent requests to embedded image models. Others wait; a larger request runs " +
        "alone",
    ),
  image_wait_ms: z.number().int().min(0).default(30_000)
    .describe("Longest wait for `image_pixels`, in milliseconds. Then the request gets 503 with `retry-after`"),
  body_gap_ms: z.number().int().min(1).default(15_000)
    .describe("Longest silence within a request body, in milliseconds. Then the request gets 408"),
  body_grace_ms: z.number().int().min(0).default(10_000)
    .describe("Time before `body_min_bytes_per_second` applies to a body, in milliseconds"),
  body_min_bytes_per_second: z.number().int().min(1).default(1024)
    .describe("Slowest average rate of a body after `body_grace_ms`, in bytes per second. Slower ones get 408"),
  body_total_ms: z.number().int().min(1).default(120_000)
    .describe("Longest time for a whole request body, in milliseconds. Then the request gets 408"),
  answer_unread_ms: z.number().int().min(1).default(60_000)
    .describe(
      "How long a client may leave a streamed answer, or images, unread, in milliseconds. Then it counts as disconnected",
    ),
  drained_requests: z.number().int().min(0).default(1000)
    .describe("Most concurrent answers that are read to their end for billing after the client has disconnected"),
  requests_per_client: z.number().int().min(1).optional()
    .describe("Most running requests with one key from one address (of IPv6, one /64). More get 429. Absent: no limit")
    .meta({ examples: [32] }),
});

/** Schema of `images`. */
export const imagesSchema = z.strictObject({
  default_quality: z.enum(["auto", "low", "medium", "high"]).optional()
    .describe("Quality for requests that name none. Absent: such requests get 400. SDKs tend to leave it out"),
  total_ms: z.number().int().min(1).default(900_000)
    .describe("Longest time for one image request, in milliseconds. Large images take minutes"),
  uploads: z.strictObject({
    max_file_bytes: z.number().int().min(1024).default(52_428_800)
      .describe("Largest uploaded file, in bytes. Larger ones get 413"),
    max_upload_bytes: z.number().int().min(1024).default(67_108_864)
      .describe("Largest form with all its files, in bytes. Larger ones get 413"),
    max_parts: z.number().int().min(1).default(32).describe("Most fields and files of one form. More get 400"),
    concurrent_uploads: z.number().int().min(1).default(4)
      .describe(
        "Most forms that are read concurrently; of one key, three quarters. At most 32 others wait, for up to 30 s",
      ),
  }).prefault({}).describe("Limits of uploaded images"),
  idempotency: z.strictObject({
    window_seconds: z.number().int().min(1).max(604_800).default(3600)
      .describe("How long a repeat with the same `Idempotency-Key` gets the same images, in seconds"),
    max_bytes: z.number().int().min(0).default(268_435_456)
      .describe("Most memory for images that are kept for repeats, in bytes. The oldest go first"),
  }).prefault({}).describe("Repeats of a request with the same `Idempotency-Key`"),
});

/** Schema of `responses`. */
export const responsesSchema = z.strictObject({
  recall: z.strictObject({
    minutes: z.number().int().min(1).max(10_080).default(60)
      .describe("How long a response is kept after its last use, in minutes"),
    megabytes: z.number().int().min(1).max(65_536).default(64)
      .describe(
        "Most memory per process for kept responses, in MiB. The least recently used ones of the key with the most bytes " +
          "go first",
      ),
  }).nullable().prefault({})
    .describe(
      "Recent responses that requests may continue with `previous_response_id` and `item_reference`. They stay in " +
        "memory, and encrypted in Redis if `limits_store` names one. `null`: none are kept",
    ),
  websocket: z.strictObject({
    connections: z.number().int().min(1).max(100_000).default(1000)
      .describe("Most WebSockets per process. Further clients get 426 and use plain requests"),
    connections_per_key: z.number().int().min(1).max(100_000).default(250)
      .describe("Most WebSockets of one API key per process. Further ones get 426"),
    idle_seconds: z.number().int().min(1).max(86_400).default(600)
      .describe("How long a WebSocket may stay open without a request, in seconds"),
  }).nullable().prefault({})
    .describe("WebSockets on /v1/responses. They need `recall`. `null`: none, clients use plain requests"),
});

/** Schema of `routing`. */
export const routingSchema = z.strictObject({
  attempts: z.number().int().min(1).max(8).default(3)
    .describe(
      "Most attempts per request, counted over all targets. Repeats at one target leave attempts for the targets that " +
        "were not tried yet",
    ),
  affinity_minutes: z.number().int().min(0).max(1440).default(60)
    .describe(
      "How long requests of one conversation go to the target that answered its last one, in minutes, so that its prompt " +
        "cache is used; 0: off",
    ),
  breaker: z.strictObject({
    window_ms: z.number().int().min(1000).max(600_000).default(30_000)
      .describe("Period over which the share of failed requests is measured, in milliseconds"),
    least_requests: z.number().int().min(1).max(10_000).default(10)
      .describe("Fewest requests within `window_ms` before the share of failures can open the breaker"),
    failure_percent: z.number().int().min(1).max(100).default(50)
      .describe("Share of failed requests that opens the breaker, in percent"),
    consecutive_failures: z.number().int().min(1).max(1000).default(5)
      .describe("Failures in a row, of any kind, that open the breaker"),
    connect_failures: z.number().int().min(1).max(1000).default(5)
      .describe("Failures to connect in a row that open the breaker"),
    open_ms: z.number().int().min(1).max(600_000).default(5_000)
      .describe(
        "How long the breaker stays open, in milliseconds. It is doubled, then tripled, if the breaker opens again soon",
      ),
  }).prefault({}).describe("Circuit breaker of each upstream and model"),
});

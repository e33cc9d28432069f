/** Schemas of the members about serving requests: `resource_limits`, `images`, `responses` and `routing`. */
import { z } from "zod";
import { milliseconds } from "../catalog/timeouts.ts";

/** Schema of `resource_limits`. */
export const resourceLimitsSchema = z.strictObject({
  json_body_bytes: z.number().int().min(1024).default(33_554_432)
    .describe("Maximum size of a JSON body in bytes. Larger ones get 413"),
  body_budget_bytes: z.number().int().min(1024).default(268_435_456)
    .describe(
      "Memory for the bodies of all concurrent requests, in bytes. A JSON body counts four times its size, and once from " +
        "the beginning of a streamed answer to its end. Whole answers of more than a million characters, and repeated images, " +
        "count until their client has read them. One API key gets at most three quarters, unless it sends the only " +
        "body. Requests beyond the limit get 429",
    ),
  image_request_pixels: z.number().int().min(1_048_576).default(50_331_648)
    .describe(
      "Maximum pixels of one request to an embedded image model: uploads, mask and requested images. Larger requests " +
        "get 400",
    ),
  image_pixels: z.number().int().min(1_048_576).default(25_165_824)
    .describe(
      "Maximum pixels in memory of all concurrent requests to embedded image models. Others wait; a larger request " +
        "runs alone",
    ),
  image_wait_ms: milliseconds.min(0).default(30_000)
    .describe("Maximum wait for `image_pixels`, in milliseconds. After that the request gets 503 with `retry-after`"),
  body_gap_ms: milliseconds.min(1).default(15_000)
    .describe("Maximum pause within a request body, in milliseconds. After that the request gets 408"),
  body_grace_ms: milliseconds.min(0).default(10_000)
    .describe("Delay before `body_min_bytes_per_second` applies to a body, in milliseconds"),
  body_min_bytes_per_second: z.number().int().min(1).default(1024)
    .describe("Minimum average rate of a body after `body_grace_ms`, in bytes per second. Slower ones get 408"),
  body_total_ms: milliseconds.min(1).default(120_000)
    .describe("Maximum time for a whole request body, in milliseconds. After that the request gets 408"),
  answer_unread_ms: milliseconds.min(1).default(60_000)
    .describe(
      "How long a client may stop reading a stream, images or a large answer, in milliseconds. After that it counts as " +
        "disconnected",
    ),
  drained_requests: z.number().int().min(0).default(1000)
    .describe(
      "Maximum number of concurrent answers that are read to their end for billing after the client has disconnected. " +
        "One API key gets three quarters",
    ),
  requests_per_client: z.number().int().min(1).optional()
    .describe(
      "Maximum number of running requests per key and client address (a /64 for IPv6). More get 429. Default: no limit",
    )
    .meta({ examples: [32] }),
});

/** Schema of `images`. */
export const imagesSchema = z.strictObject({
  default_quality: z.enum(["auto", "low", "medium", "high"]).optional()
    .describe("Quality for requests that specify none, as those of SDKs often do. If omitted, such requests get 400"),
  total_ms: milliseconds.min(1).default(900_000)
    .describe("Maximum time for one image request, in milliseconds. Large images take minutes"),
  uploads: z.strictObject({
    max_file_bytes: z.number().int().min(1024).default(52_428_800)
      .describe("Maximum size of an uploaded file, in bytes. Larger ones get 413"),
    max_upload_bytes: z.number().int().min(1024).default(67_108_864)
      .describe("Maximum size of a form with all its files, in bytes. Larger ones get 413"),
    max_parts: z.number().int().min(1).default(32).describe(
      "Maximum number of fields and files in one form. More get 400",
    ),
    concurrent_uploads: z.number().int().min(1).default(4)
      .describe(
        "Maximum number of forms read concurrently; one key gets at most three quarters. Up to 32 others wait, for " +
          "up to 30 s",
      ),
  }).prefault({}).describe("Limits on uploaded images"),
  idempotency: z.strictObject({
    window_seconds: z.number().int().min(1).max(604_800).default(3600)
      .describe("How long a repeated request with the same `Idempotency-Key` gets the same images, in seconds"),
    max_bytes: z.number().int().min(0).default(268_435_456)
      .describe(
        "Maximum memory for images kept for repeated requests, in bytes. When it is full, the key that uses most of it " +
          "loses its oldest ones",
      ),
  }).prefault({}).describe("Repeated requests with the same `Idempotency-Key`"),
});

/** Schema of `responses`. */
export const responsesSchema = z.strictObject({
  recall: z.strictObject({
    minutes: z.number().int().min(1).max(10_080).default(60)
      .describe("How long a response is kept after its last use, in minutes"),
    megabytes: z.number().int().min(1).max(65_536).default(64)
      .describe(
        "Maximum memory per process for kept responses, in MiB. When it is full, the key that uses most of it loses " +
          "its least recently used ones",
      ),
  }).nullable().prefault({})
    .describe(
      "Recent responses that requests may continue with `previous_response_id` and `item_reference`. They stay in " +
        "memory, and encrypted in Redis if `limits_store` is Redis. `null` keeps none",
    ),
  websocket: z.strictObject({
    connections: z.number().int().min(1).max(100_000).default(1000)
      .describe("Maximum number of WebSockets per process. Further clients get 426 and use plain requests"),
    connections_per_key: z.number().int().min(1).max(100_000).default(250)
      .describe("Maximum number of WebSockets per API key and process. Further ones get 426"),
    idle_seconds: z.number().int().min(1).max(86_400).default(600)
      .describe("How long a WebSocket may stay open without a request, in seconds"),
  }).nullable().prefault({})
    .describe("WebSockets on /v1/responses. They require `recall`. `null` disables them: clients use plain requests"),
});

/** Schema of `routing`. */
export const routingSchema = z.strictObject({
  attempts: z.number().int().min(1).max(8).default(3)
    .describe(
      "Maximum number of attempts per request, over all targets. Retries at one target leave attempts for targets " +
        "that have not been tried yet",
    ),
  affinity_minutes: z.number().int().min(0).max(1440).default(60)
    .describe(
      "How long requests of one conversation go to the target that answered the last one, in minutes, to use its " +
        "prompt cache. `0` turns this off",
    ),
  breaker: z.strictObject({
    window_ms: z.number().int().min(1000).max(600_000).default(30_000)
      .describe("Period over which the share of failed requests is measured, in milliseconds"),
    least_requests: z.number().int().min(1).max(10_000).default(10)
      .describe("Minimum number of requests within `window_ms` before the share of failures can open the breaker"),
    failure_percent: z.number().int().min(1).max(100).default(50)
      .describe("Share of failed requests that opens the breaker, in percent"),
    consecutive_failures: z.number().int().min(1).max(1000).default(5)
      .describe("Number of consecutive failures of any kind that opens the breaker"),
    connect_failures: z.number().int().min(1).max(1000).default(5)
      .describe("Number of consecutive connection failures that opens the breaker"),
    open_ms: z.number().int().min(1).max(600_000).default(5_000)
      .describe(
        "How long the breaker stays open, in milliseconds. If it soon opens again, the time is doubled, then tripled",
      ),
  }).prefault({}).describe("Circuit breaker of each combination of upstream and model"),
});

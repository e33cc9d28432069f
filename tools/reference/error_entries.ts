/**
 * The meaning of errors, and instructions for the operator. The types require an entry for every kind, code and reason.
 */
import type { ErrorKind } from "../../lib/errors.ts";
import type { ReasonCode } from "../../lib/store/ledger.ts";

/** An entry of the troubleshooting page, in sentences without their final period. */
export interface Entry {
  /** The meaning of the error or event. */
  about: string;
  /** Commands and places that show more. */
  see: string;
  /** Instructions for the operator. */
  act: string;
}

const EXPLAIN = "`sluice explain REQUEST_ID`, with the id from the header `x-request-id`";

/** Entries by kind of error. */
export const KIND_ENTRIES: Readonly<Record<ErrorKind, Entry>> = {
  invalid: {
    about: "The request is wrong for the endpoint, the model or its upstream. `param` names the parameter",
    see: `${EXPLAIN}; \`sluice translate\` shows what an upstream would get`,
    act: "Correct the parameter, or leave it out. A retry without a change fails again",
  },
  unauthenticated: {
    about: "The key is missing, invalid, expired or revoked",
    see: "`sluice keys list` shows the keys with their state and expiry",
    act:
      "Send `Authorization: Bearer KEY`, under /anthropic `x-api-key: KEY`, under /v1beta `x-goog-api-key: KEY`. Make a new key with `sluice keys add`",
  },
  forbidden: {
    about: "The key is valid, but its group or its own rules do not allow this",
    see: "`sluice keys show NAME` and `sluice check` show the rules of the key and of its group",
    act: "Allow it in `groups` or with `sluice keys change`, or use another key",
  },
  not_found: {
    about: "The path, the model or the named object does not exist",
    see: "`GET /v1/models` with the same key lists its models",
    act:
      "Correct the base URL (OpenAI clients: ending with /v1; Anthropic clients: with /anthropic; Google clients: without a path) or the model's id",
  },
  method_not_allowed: {
    about: "The path exists, but not with this method",
    see: "The header `allow` names the methods",
    act: "Correct the method. Clients send POST to the endpoints of models",
  },
  too_slow: {
    about: "The client sent its body, or read its answer, too slowly",
    see: "The log line `request` has `bytes_in` and `total_ms`",
    act:
      "Look at the client's network and proxy, or raise `resource_limits.body_…` and `resource_limits.answer_unread_ms`",
  },
  too_large: {
    about: "The body or a file in it is larger than allowed",
    see: "The message names the maximum, in bytes",
    act:
      "Send less, or raise `resource_limits.json_body_bytes` or `images.uploads`, and the limit of the reverse proxy",
  },
  unsupported_media_type: {
    about: "The gateway cannot read this format or character set, or a compressed body",
    see: "The message names the formats that work",
    act: "Send JSON in UTF-8, image edits as multipart/form-data, without compression",
  },
  upgrade_required: {
    about: "A WebSocket was requested at an endpoint without one, or too many are open",
    see: "`responses.websocket` in the configuration",
    act: "Nothing: clients use plain requests instead. Raise `responses.websocket.connections` for more",
  },
  limited: {
    about: "A limit or budget of the gateway is used up, or the gateway is busy",
    see: `${EXPLAIN}; \`sluice budgets\`; the headers \`x-ratelimit-…\``,
    act:
      "Wait for `retry-after`, or raise the limit in `groups` or with `sluice keys change`. If too many bytes, pixels " +
      "or uploads are being handled, raise `resource_limits` instead",
  },
  exhausted: {
    about: "The rate limit or the credit of your account at the vendor is used up, and no other target was left",
    see: "The log line `target_failed` has the vendor's message; `GET /admin/v1/health` shows pauses of upstreams",
    act: "Ask the vendor for more, pay the account, or add a target at another vendor",
  },
  internal: {
    about: "The gateway itself failed",
    see: "The log line `request_failed` has `cause` and `stack`",
    act: "Report it with these lines. A retry may succeed",
  },
  upstream: {
    about: "The upstream failed, could not be reached, refused the gateway's key, or sent an unreadable answer",
    see: `\`sluice doctor\`; the log line \`target_failed\`; ${EXPLAIN}`,
    act: "Correct what the doctor finds: key, address, network. Add a second target for failover",
  },
  overloaded: {
    about:
      "The gateway cannot serve the request now: no target is available, a store is unreachable, or it is stopping",
    see: "`GET /admin/v1/health` and the log lines `breaker_opened`, `store_down`, `ledger_failed`",
    act: "Retry after `retry-after`. Look at the upstream or the store that the log names",
  },
  timeout: {
    about: "The upstream did not answer within its timeout",
    see: `${EXPLAIN} shows each attempt with its time`,
    act: "Raise `timeouts` of the upstream or model, or add another target",
  },
};

/** Entries by code of an error, where the kind is not precise enough. */
export const CODE_ENTRIES = {
  invalid_api_key: {
    about: "The key is not known, or it has expired",
    see: "`sluice keys list`",
    act:
      "Check for spaces and missing characters. Rotate or extend the key: `sluice keys rotate`, `sluice keys change`",
  },
  model_not_found: {
    about: "No model has this id or alias, the key may not use it, or the vendor does not know it",
    see: "`GET /v1/models` with the same key; `sluice check` shows all models with their targets",
    act:
      "Correct the id, add it to `models`, or allow it in the group. If the vendor does not know it, `sluice doctor` says whether the `base_url` of its upstream lacks a path such as /v1 or /v1beta",
  },
  context_length_exceeded: {
    about: "The prompt and the answer do not fit into the model's context window",
    see: "The message names the tokens; `sluice models show ID`",
    act: "Shorten the prompt or `max_tokens`, or use a model with a larger context",
  },
  missing_required_parameter: {
    about: "A required parameter is missing",
    see: "`param` names it",
    act: "Add the parameter. For images without `quality`, set `images.default_quality`",
  },
  unsupported_parameter: {
    about: "The gateway or the model does not support this parameter",
    see: "`param` names it",
    act: "Leave it out, or choose a model that supports it",
  },
  insufficient_quota: {
    about: "A budget of the key or its group is spent, or the credit at the vendor",
    see: "`sluice budgets`; the message names the budget and its reset",
    act: "Raise the budget, wait for the reset, or pay the vendor's account",
  },
  rate_limit_requests: {
    about: "The limit of requests per minute is reached",
    see: "The headers `x-ratelimit-…-requests`; the message names whose limit it is",
    act: "Wait for `retry-after`, or raise `requests_per_minute`",
  },
  rate_limit_tokens: {
    about: "The limit of tokens per minute is reached",
    see: "The headers `x-ratelimit-…-tokens`; the message names whose limit it is",
    act: "Wait for `retry-after`, send fewer or smaller requests, or raise `tokens_per_minute`",
  },
  concurrency_limit: {
    about: "Too many requests run concurrently",
    see: "The message names whose limit it is",
    act: "Send fewer requests in parallel, or raise `concurrency`",
  },
  upstream_refused: {
    about:
      "The vendor refused the request with 403: your account may lack a permission, or the request names a file of another account",
    see: "The log line `target_failed` has the vendor's message",
    act: "Check the permissions of the key at the vendor. Other targets are tried first",
  },
  content_policy_violation: {
    about: "The vendor refused the request because of its content",
    see: "The message is the vendor's",
    act: "Change the prompt",
  },
  content_filter: {
    about: "The vendor's content filter stopped the answer",
    see: `The ledger has the ending; ${EXPLAIN}`,
    act: "Change the prompt, or the filter in your account",
  },
  invalid_size: {
    about: "The image model does not make images of this size",
    see: "The message names the sizes that it makes",
    act: "Use one of them, or `auto`",
  },
  idempotency_key_reused: {
    about: "The same `Idempotency-Key` was used for another request",
    see: "`images.idempotency.window_seconds`",
    act: "Use a new key for each request",
  },
  idempotent_answer_gone: {
    about: "The first request with this `Idempotency-Key` was completed, but its images are no longer kept",
    see: "`images.idempotency.max_bytes`",
    act: "Use a new key. The first request was billed",
  },
  previous_response_not_found: {
    about: "The response that `previous_response_id` names is no longer kept, or belongs to another key",
    see: "`responses.recall` in the configuration; `limits_store` if you run several nodes",
    act: 'Send the whole conversation, or set `"store": false` in the client. Raise `minutes` or `megabytes`',
  },
  item_not_found: {
    about: "The item that `item_reference` names is no longer kept",
    see: "`responses.recall` in the configuration",
    act: "Send the item itself",
  },
  thread_unsupported_request: {
    about: "The request belongs to a conversation that the vendor keeps, which this target cannot continue",
    see: "The group's `vendor_state`",
    act: "Allow `vendor_state` for the group, or let the client send the whole conversation",
  },
  websocket_connection_limit_reached: {
    about: "The WebSocket has been open for too long",
    see: "The message names its age",
    act: "Nothing: Codex opens a new one",
  },
} as const satisfies Record<string, Entry>;

/** Reasons of the ledger, with their meanings. */
export const REASON_MEANINGS: Readonly<Record<ReasonCode, string>> = {
  limit: "A rate or concurrency limit of the gateway",
  budget: "A budget of the key or its group",
  permission: "The key is missing, wrong, or may not do this",
  invalid: "The gateway rejected the request; `param` names the parameter",
  model_not_found: "The model does not exist, has expired, or the key may not use it",
  body_too_large: "The body is larger than allowed",
  media_type: "The body has an unsupported media type or encoding",
  client_slow: "The client sent its body or read its answer too slowly",
  client_disconnected: "The client disconnected",
  busy: "The gateway was at capacity: bodies, images, or requests with the same `Idempotency-Key`",
  unavailable: "No target was available, or the store was unreachable",
  shutdown: "The gateway was stopping",
  upstream_rejected: "The upstream rejected the request itself",
  upstream_limit: "The upstream's rate limit or the account's credit",
  upstream_overloaded: "The upstream was overloaded",
  upstream_timeout: "The upstream took too long",
  upstream_failed: "The upstream failed or could not be reached",
  internal: "The gateway failed",
};

/** Opens, attributes and fails the meter of a request, and gives the reasons in ledger entries. */
import { type Caller, requireCaller } from "../access/permissions.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { writeLimitHeaders } from "../limits/headers.ts";
import { endUserName, MAX_USER_LENGTH } from "../billing/end_user_name.ts";
import type { EntryDraft } from "../billing/entry_draft.ts";
import { Meter } from "../billing/meter.ts";
import { statusFor } from "../protocols/error_bodies.ts";
import type { EntryReason, MeteredEndpoint, ReasonCode } from "../store/ledger.ts";
import { memberName } from "../observe/request_record.ts";
import { isObject, type Json } from "../json/mod.ts";
import { brokenRule } from "./broken_rule.ts";
import { stringOf } from "../protocols/members.ts";

/** The HTTP status of a request whose client disconnected before the answer began, as in nginx. */
export const CLIENT_DISCONNECTED = 499;

/** A request and its endpoint. */
export interface MeteredRequest {
  request: Request;
  context: RouteContext;
  endpoint: MeteredEndpoint;
}

/**
 * Opens the meter of a request. The process does not end before the meter does.
 * @param interrupt called if the process must end before the request has, with the error for the client
 */
export function openRequestMeter(
  { context: { gateway, requestId, caller, record, body }, endpoint }: MeteredRequest,
  interrupt: (reason: GatewayError) => void,
): Meter {
  const { keyId, groupName } = requireCaller(caller);
  const meter = new Meter(gateway, { id: requestId, keyId, group: groupName, endpoint, record });
  gateway.inFlight.add(meter, {
    kind: endpoint.startsWith("images.") ? "images" : "text",
    stop: interrupt,
  });
  void meter.done.then(gateway.uses.begin());
  body.keepUntil(meter.done);
  return meter;
}

/** Ends the meter, if given, of a request that failed. There is no charge. @returns the error for the client */
export async function settleFailure(
  thrown: unknown,
  { request, context, endpoint, meter }: MeteredRequest & { meter?: Meter },
): Promise<GatewayError> {
  const error = toGatewayError(thrown);
  if (meter !== undefined) {
    if (request.signal.aborted) await failDisconnected(meter);
    else await meter.fail(statusFor(error, endpoint), reasonOf(error, context.caller));
  }
  return error.withHeaders({ "x-sluice-cost": "0" });
}

/** Ends the meter of a request whose client disconnected before it received any part of the answer. */
export function failDisconnected(meter: Meter): Promise<void> {
  return meter.fail(CLIENT_DISCONNECTED, DISCONNECTED);
}

/**
 * Adds the status of the limits that apply to the response's headers.
 * @param failure the error that the client gets; absent if it gets an answer
 */
export function addLimitHeaders(
  { context: { gateway, answerHeaders }, endpoint }: MeteredRequest,
  { meter, failure }: { meter: Meter; failure?: GatewayError | undefined },
): void {
  const statuses = meter.limitStatuses();
  const refusedMs = failure?.status === 429 ? failure.retryAfterMs : undefined;
  if (statuses.length === 0 && refusedMs === undefined) return;
  const style = endpoint === "messages" ? "anthropic" : "openai";
  answerHeaders.push(...writeLimitHeaders(statuses, { now: gateway.now, style, refusedMs }));
}

/** Reason in the ledger: the client disconnected before its request ended. */
export const DISCONNECTED: EntryReason = { code: "client_disconnected" };

/** Reason in the ledger: the process ended before the request did. */
export const SHUTDOWN: EntryReason = { code: "shutdown" };

/** Codes of reasons that also name the broken rule. */
const CODES_WITH_RULE: ReadonlySet<ReasonCode> = new Set(["invalid", "body_too_large", "media_type"]);

/** Returns the ledger's reason for an error. It does not contain the message, which may quote the client. */
export function reasonOf(error: GatewayError, caller?: Pick<Caller, "rules">): EntryReason {
  const { code, param, refusal } = error;
  const reason: EntryReason = { code: reasonCodeOf(error), ...refusal };
  // An upstream may have chosen the code.
  if (code !== undefined && /^[\w.-]{1,64}$/.test(code)) reason.error = code;
  if (param !== undefined) reason.param = memberName(param.replace(/\[\d*\]/g, ""));
  if (CODES_WITH_RULE.has(reason.code)) reason.rule = brokenRule(error);
  if (caller === undefined || refusal === undefined) return reason;
  if ("limit" in refusal && refusal.limit.scope === "key") {
    reason.set_by = caller.rules.limits === undefined ? "group" : "key";
  }
  if ("budget" in refusal && refusal.budget.scope !== "group") {
    const { budget, user_budget } = caller.rules;
    reason.set_by = (refusal.budget.scope === "key" ? budget : user_budget) === undefined ? "group" : "key";
  }
  return reason;
}

function reasonCodeOf({ kind, code, vendor, fault, refusal }: GatewayError): ReasonCode {
  if (refusal !== undefined && "outage" in refusal) return "unavailable";
  if (refusal !== undefined && !("targets" in refusal)) {
    if ("limit" in refusal) return "limit";
    return "budget" in refusal ? "budget" : "permission";
  }
  const isVendorError = vendor !== undefined || fault === "status";
  switch (kind) {
    case "limited":
      return "busy";
    case "forbidden":
    case "unauthenticated":
      return "permission";
    case "not_found":
      if (isVendorError) return "upstream_rejected";
      return code === "model_not_found" ? "model_not_found" : "invalid";
    case "too_large":
      return isVendorError ? "upstream_rejected" : "body_too_large";
    case "too_slow":
      return "client_slow";
    case "unsupported_media_type":
      return "media_type";
    case "exhausted":
      return "upstream_limit";
    case "overloaded":
      return isVendorError ? "upstream_overloaded" : "unavailable";
    case "timeout":
      return "upstream_timeout";
    case "upstream":
      return "upstream_failed";
    case "internal":
      return "internal";
    default:
      return isVendorError ? "upstream_rejected" : "invalid";
  }
}

/** The meter of a request, for the function that `runMetered` calls. */
export interface MeteredWork {
  meter: Meter;
  /** Aborts when the process ends. Its reason is the error for the client. */
  interrupted: AbortSignal;
  /** Makes the caller responsible for ending the meter, even if `work` throws afterwards. */
  handOver(): void;
}

/**
 * Runs `work` with a new meter, which `work` must have ended when it returns. If `work` throws, the meter ends without
 * a charge.
 */
export async function runMetered(
  request: Request,
  { context, endpoint }: { context: RouteContext; endpoint: MeteredEndpoint },
  work: (metered: MeteredWork) => Promise<Response>,
): Promise<Response> {
  const metered = { request, context, endpoint };
  const interruption = new AbortController();
  const meter = openRequestMeter(metered, (reason) => interruption.abort(reason));
  let ownsMeter = true;
  try {
    attributeRequest(meter.entry, request.headers);
    return await work({ meter, interrupted: interruption.signal, handOver: () => void (ownsMeter = false) });
  } catch (thrown) {
    throw await settleFailure(thrown, { ...metered, ...(ownsMeter && { meter }) });
  } finally {
    addLimitHeaders(metered, { meter });
  }
}

/** Receives the end user and the tags of a request. */
type Attributable = Pick<EntryDraft, "attribute">;

const USER_HEADER = "x-sluice-user";
const TAGS_HEADER = "x-sluice-tags";

/** Longest tag, in characters. */
const MAX_TAG_LENGTH = 64;
/** Maximum number of tags of a request. */
const MAX_TAGS = 10;

/** Reads the end user and the tags from the headers. @throws {GatewayError} `invalid` if a header is malformed */
export function attributeRequest(entry: Attributable, headers: Pick<Headers, "get">): void {
  const user = readUserHeader(headers);
  const tags = headers.get(TAGS_HEADER);
  if (user !== undefined) entry.attribute({ user });
  if (tags !== null) entry.attribute({ tags: readTags(tags) });
}

/** Reads the end user from the headers; undefined without that header. @throws {GatewayError} `invalid` if malformed */
export function readUserHeader(headers: Pick<Headers, "get">): string | undefined {
  const text = headers.get(USER_HEADER);
  if (text === null) return undefined;
  if (text.length <= MAX_USER_LENGTH && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  throw new GatewayError(
    "invalid",
    `Cannot read the header "${USER_HEADER}": expected 1 to ${MAX_USER_LENGTH} printable ASCII characters`,
  );
}

function readTags(text: string): string[] {
  const tags = [...new Set(text.split(",").map((tag) => tag.trim()))];
  const isTag = (tag: string) => tag.length <= MAX_TAG_LENGTH && /^[A-Za-z0-9._:/=@+-]+$/.test(tag);
  if (tags.length <= MAX_TAGS && tags.every(isTag)) return tags;
  throw new GatewayError(
    "invalid",
    `Cannot read the header "${TAGS_HEADER}": expected at most ${MAX_TAGS} tags, separated by commas, of 1 to ` +
      `${MAX_TAG_LENGTH} letters, digits and . _ : / = @ + - each`,
  );
}

/**
 * Reads the end user from a body: `safety_identifier` or `user` in OpenAI's protocols, `metadata.user_id` in messages.
 * The header takes precedence over the body.
 */
export function attributeUser(
  entry: Attributable,
  { safety_identifier, user, metadata }: { safety_identifier?: Json; user?: Json; metadata?: Json },
): void {
  const userId = stringOf(safety_identifier) ?? stringOf(user) ??
    (isObject(metadata) ? stringOf(metadata.user_id) : undefined);
  if (userId === undefined) return;
  const name = endUserName(userId);
  if (name !== "") entry.attribute({ user: name });
}

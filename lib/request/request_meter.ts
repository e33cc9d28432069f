/** The meter of a request: opening, attributing, failing, and the reasons of ledger entries. */
import { type Caller, requireCaller } from "../access/permissions.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { writeLimitHeaders } from "../limits/headers.ts";
import { Meter } from "../billing/meter.ts";
import { anthropicStatus } from "../protocols/error_bodies.ts";
import type { EntryReason, MeteredEndpoint, ReasonCode } from "../store/ledger.ts";
import { memberName } from "../observe/request_record.ts";
import { isObject, type Json } from "../json/mod.ts";
import { plainText } from "../text.ts";
import { brokenRule } from "./broken_rule.ts";
import { stringOf } from "../protocols/members.ts";

/** The status of a request whose client disconnected before its answer began; the same as in nginx. */
export const CLIENT_DISCONNECTED = 499;

/** A request and its endpoint. */
export interface MeteredRequest {
  request: Request;
  context: RouteContext;
  endpoint: MeteredEndpoint;
}

/**
 * Opens the meter of a request. Until it ends, the process waits for the request.
 * @param interrupt called where the process ends before the request does, with the error for the client
 */
export function openRequestMeter(
  { context: { gateway, requestId, caller, record }, endpoint }: MeteredRequest,
  interrupt: (reason: GatewayError) => void,
): Meter {
  const { keyId, groupName } = requireCaller(caller);
  const meter = new Meter(gateway, { id: requestId, keyId, group: groupName, endpoint, record });
  gateway.inFlight.add(meter, {
    kind: endpoint.startsWith("images.") ? "images" : "text",
    stop: interrupt,
  });
  void meter.done.then(gateway.uses.begin());
  return meter;
}

/** Ends the meter of a request that failed, if it is given, without a charge. @returns the error for the client */
export async function settleFailure(
  thrown: unknown,
  { request, context, endpoint, meter }: MeteredRequest & { meter?: Meter },
): Promise<GatewayError> {
  const error = toGatewayError(thrown);
  if (meter !== undefined) {
    if (request.signal.aborted) await failDisconnected(meter);
    else await meter.fail(statusOf(error, endpoint), reasonOf(error, context.caller));
  }
  return error.withHeaders({ "x-sluice-cost": "0" });
}

/** Ends the meter of a request whose client disconnected before it got any of the answer. */
export function failDisconnected(meter: Meter): Promise<void> {
  return meter.fail(CLIENT_DISCONNECTED, DISCONNECTED);
}

/**
 * Adds the limits that apply, and their statuses, to the response's headers.
 * @param failure the error of the response; absent: an answer
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

/** The status that a client gets with an error. */
function statusOf(error: GatewayError, endpoint: MeteredEndpoint): number {
  return endpoint === "messages" ? anthropicStatus(error) : error.status;
}

/** The client disconnected before its request ended. */
export const DISCONNECTED: EntryReason = { code: "client_disconnected" };

/** The process ends before the request does. */
export const SHUTDOWN: EntryReason = { code: "shutdown" };

/** Reasons that name the rule which the request breaks. */
const BROKEN_RULES: ReadonlySet<ReasonCode> = new Set(["invalid", "body_too_large", "media_type"]);

/** Returns the reason of an error. It has no error text, which may quote a client. */
export function reasonOf(error: GatewayError, caller?: Pick<Caller, "rules">): EntryReason {
  const { code, param, refusal } = error;
  const reason: EntryReason = { code: reasonCodeOf(error), ...refusal };
  // The code may be an upstream's.
  if (code !== undefined && /^[\w.-]{1,64}$/.test(code)) reason.error = code;
  if (param !== undefined) reason.param = memberName(param.replace(/\[\d*\]/g, ""));
  if (BROKEN_RULES.has(reason.code)) reason.rule = brokenRule(error);
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
    return "limit" in refusal ? "limit" : "budget" in refusal ? "budget" : "permission";
  }
  const isVendors = vendor !== undefined || fault === "status";
  switch (kind) {
    case "limited":
      return "busy";
    case "forbidden":
    case "unauthenticated":
      return "permission";
    case "not_found":
      return isVendors ? "upstream_rejected" : code === "model_not_found" ? "model_not_found" : "invalid";
    case "too_large":
      return isVendors ? "upstream_rejected" : "body_too_large";
    case "too_slow":
      return "client_slow";
    case "unsupported_media_type":
      return "media_type";
    case "exhausted":
      return "upstream_limit";
    case "overloaded":
      return isVendors ? "upstream_overloaded" : "unavailable";
    case "timeout":
      return "upstream_timeout";
    case "upstream":
      return "upstream_failed";
    case "internal":
      return "internal";
    default:
      return isVendors ? "upstream_rejected" : "invalid";
  }
}

/** A request under a meter. */
export interface MeteredWork {
  meter: Meter;
  /** Aborts when the process ends; its reason is the client's error. */
  interrupted: AbortSignal;
  /** After this call the caller ends the meter, even if the request fails for this client. */
  handOver(): void;
}

/** Runs `work`, which ends the meter itself when it returns. A failure ends the meter without a charge. */
export async function runMetered(
  request: Request,
  { context, endpoint }: { context: RouteContext; endpoint: MeteredEndpoint },
  work: (metered: MeteredWork) => Promise<Response>,
): Promise<Response> {
  const metered = { request, context, endpoint };
  const interruption = new AbortController();
  const meter = openRequestMeter(metered, (reason) => interruption.abort(reason));
  let isOwn = true;
  try {
    attributeRequest(meter, request.headers);
    return await work({ meter, interrupted: interruption.signal, handOver: () => void (isOwn = false) });
  } catch (thrown) {
    throw await settleFailure(thrown, { ...metered, ...(isOwn && { meter }) });
  } finally {
    addLimitHeaders(metered, { meter });
  }
}

/** End user and tags of a request. */
type Attributed = Pick<Meter, "attribute">;

const USER_HEADER = "x-sluice-user";
const TAGS_HEADER = "x-sluice-tags";

/** Most characters of an end user, and of a tag. */
const USER_CHARACTERS = 256;
const TAG_CHARACTERS = 64;
/** Most tags of a request. */
const MAX_TAGS = 10;

/** Reads the headers of a request. @throws {GatewayError} `invalid` where they are malformed */
export function attributeRequest(meter: Attributed, headers: Pick<Headers, "get">): void {
  const user = readUserHeader(headers);
  const tags = headers.get(TAGS_HEADER);
  if (user !== undefined) meter.attribute({ user });
  if (tags !== null) meter.attribute({ tags: readTags(tags) });
}

/** Reads the end user that the headers name. @throws {GatewayError} `invalid` where the header is malformed */
export function readUserHeader(headers: Pick<Headers, "get">): string | undefined {
  const text = headers.get(USER_HEADER);
  if (text === null) return undefined;
  if (text.length <= USER_CHARACTERS && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  throw new GatewayError(
    "invalid",
    `Cannot read the header "${USER_HEADER}": expected 1 to ${USER_CHARACTERS} printable ASCII characters`,
  );
}

function readTags(text: string): string[] {
  const tags = [...new Set(text.split(",").map((tag) => tag.trim()))];
  const isTag = (tag: string) => tag.length <= TAG_CHARACTERS && /^[A-Za-z0-9._:/=@+-]+$/.test(tag);
  if (tags.length <= MAX_TAGS && tags.every(isTag)) return tags;
  throw new GatewayError(
    "invalid",
    `Cannot read the header "${TAGS_HEADER}": expected at most ${MAX_TAGS} tags, separated by commas, of 1 to ` +
      `${TAG_CHARACTERS} letters, digits and . _ : / = @ + - each`,
  );
}

/** Cuts a long name and removes control characters: vendors take end users in any form, so none is refused. */
export function endUserName(text: string): string {
  return plainText(text, USER_CHARACTERS);
}

/**
 * Reads the end user of a body: `safety_identifier` or `user` of OpenAI's protocols, `metadata.user_id` of messages. A
 * header takes precedence.
 */
export function attributeUser(
  meter: Attributed,
  { safety_identifier, user, metadata }: { safety_identifier?: Json; user?: Json; metadata?: Json },
): void {
  const userName = stringOf(safety_identifier) ?? stringOf(user) ??
    (isObject(metadata) ? stringOf(metadata.user_id) : undefined);
  if (userName === undefined) return;
  const clean = endUserName(userName);
  if (clean !== "") meter.attribute({ user: clean });
}

/** Derives the reason of a ledger entry from the error of its request. */
import type { Caller } from "../access/caller.ts";
import type { GatewayError } from "../errors.ts";
import { memberName } from "../observe/member_names.ts";
import type { EntryReason, ReasonCode } from "../store/ledger.ts";

/** The client left before its request ended. */
export const LEFT: EntryReason = { code: "client_left" };

/** The process ends before the request does. */
export const SHUTDOWN: EntryReason = { code: "shutdown" };

/** Returns the reason of an error. It has no error text, which may quote a client. */
export function reasonOf(error: GatewayError, caller?: Pick<Caller, "rules">): EntryReason {
  const { code, param, refusal } = error;
  const reason: EntryReason = { code: reasonCodeOf(error), ...refusal };
  // The code may be an upstream's.
  if (code !== undefined && /^[\w.-]{1,64}$/.test(code)) reason.error = code;
  if (param !== undefined) reason.param = memberName(param.replace(/\[\d*\]/g, ""));
  if (caller === undefined || refusal === undefined) return reason;
  if ("limit" in refusal && refusal.limit.scope === "key") {
    reason.set_by = caller.rules.limits === undefined ? "group" : "key";
  }
  if ("budget" in refusal && refusal.budget.scope === "key") {
    reason.set_by = caller.rules.budget === undefined ? "group" : "key";
  }
  return reason;
}

function reasonCodeOf({ kind, code, vendor, fault, refusal }: GatewayError): ReasonCode {
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

/** Explains in sentences why a request was refused or failed. */
import type { BudgetRefusal, LimitRefusal, OutageRefusal, PermissionRefusal, TargetRefusal } from "../../errors.ts";
import { limitText } from "../../limits/errors.ts";
import type { Entry, EntryAttempt, EntryReason, ReasonCode } from "../../store/ledger.ts";
import { periodText } from "../money.ts";

/** Clauses for the reasons that have no facts of their own. */
const REASON_TEXTS: Readonly<Record<Exclude<ReasonCode, "limit" | "budget" | "permission">, string>> = {
  invalid: "the request is not valid",
  model_not_found: "the model does not exist or has expired",
  body_too_large: "the request body is too large",
  media_type: "the body has an unsupported media type or encoding",
  client_slow: "the client was too slow",
  client_disconnected: "the client disconnected before it received any of the answer",
  busy: "the gateway was at capacity",
  unavailable: "the gateway could not serve it: no target was available, or a store was unreachable",
  shutdown: "the gateway was shutting down",
  upstream_rejected: "the upstream rejected the request",
  upstream_limit: "the upstream was at its limit",
  upstream_overloaded: "the upstream was overloaded",
  upstream_timeout: "the upstream took too long",
  upstream_failed: "the upstream failed",
  internal: "the gateway failed; see its log",
};

/**
 * Explains in one sentence why a request was refused or failed. Returns `undefined` if the entry has no reason.
 * @param keyName undefined: the sentence has the id of the key
 */
export function whyText(
  { keyId, group, ending, details }: Pick<Entry, "keyId" | "group" | "ending" | "details">,
  keyName: string | undefined,
): string | undefined {
  if (ending === "lost") return "Lost: the process ended before the request did";
  const reason = details?.reason;
  if (reason === undefined) return undefined;
  if (ending === "refused") return `Refused: ${reasonText(reason, { key: keyName ?? keyId, group })}`;
  const last = reason.code.startsWith("upstream_") ? details?.attempts?.at(-1) : undefined;
  const facts = last === undefined ? "" : factsText({ ...last, request_id: undefined });
  // The facts of the last attempt say more than the code that the client got.
  const known = facts === "" ? reason : { ...reason, error: undefined };
  return `Failed: ${reasonText(known, { key: keyName ?? keyId, group })}${facts}`;
}

/** Names of the key and group of a request. */
interface Owners {
  key: string;
  group: string;
}

function reasonText(reason: EntryReason, owners: Owners): string {
  const { code, limit, budget, permission, param, rule, error } = reason;
  if (limit !== undefined) return limitReasonText(limit, reason, owners);
  if (budget !== undefined) return budgetText(budget, reason, owners);
  if (permission !== undefined) return permissionText(permission, owners);
  if (code === "limit" || code === "budget" || code === "permission") return `key "${owners.key}" may not do this`;
  if (reason.targets !== undefined) return targetsText(reason.targets);
  if (reason.outage !== undefined) return OUTAGE_TEXTS[reason.outage];
  const about = param === undefined ? "" : `, parameter "${param}"`;
  const broken = rule === undefined ? "" : `: ${rule}`;
  // An entry of another release may have a code that this release does not know.
  const text = Object.hasOwn(REASON_TEXTS, code) ? REASON_TEXTS[code] : code;
  return `${text}${about}${broken}${error === undefined || error === code ? "" : ` (${error})`}`;
}

function limitReasonText(
  { scope, id, unit, limit, needed, free_after_ms: ms }: LimitRefusal,
  reason: EntryReason,
  owners: Owners,
): string {
  const rule = `${ownerText(scope, id, owners)} is limited to ${limitText(limit, unit)}${
    settingText(scope, "limits", reason, owners)
  }`;
  if (ms === undefined) return `${rule}; the request needs ${needed}, so waiting does not help`;
  // The end of a running request is unknown, so no time is named.
  if (unit === "concurrency") return `${rule}; a slot is free once one of the running requests ends`;
  const wait = `${secondsText(ms)} s later`;
  return unit === "tokens"
    ? `${rule}; the request needs up to ${needed}, and there was room ${wait}`
    : `${rule}; the next slot was free ${wait}`;
}

/** Formats milliseconds as seconds, rounded up to tenths. */
function secondsText(ms: number): string {
  const digits = String(ms + 99).padStart(4, "0");
  const tenths = digits.at(-3);
  return `${digits.slice(0, -3)}${tenths === "0" ? "" : `.${tenths}`}`;
}

function budgetText(
  { scope, id, period, budget_usd, left_usd, held_usd, needed_usd, resets_on }: BudgetRefusal,
  reason: EntryReason,
  owners: Owners,
): string {
  const setting = settingText(scope, "budget", reason, owners);
  const held = held_usd === "0" ? "" : ` and ${held_usd} USD held for running requests`;
  return `${ownerText(scope, id, owners)} ${id === "" ? "have" : "has"} a budget of ${budget_usd} USD ` +
    `${periodText(period)}${setting} with ${left_usd} USD left${held}; ` +
    `the request could cost up to ${needed_usd} USD` +
    (resets_on === undefined ? "" : `, and the budget resets on ${resets_on}`);
}

function permissionText({ of, name }: PermissionRefusal, { key, group }: Owners): string {
  const what = of === "model" && name === "other" ? "a model that the catalog does not have" : `the ${of} "${name}"`;
  return `key "${key}" may not use ${what} (group ${group})`;
}

/** Clauses for the stores that can be out of reach. */
const OUTAGE_TEXTS: Readonly<Record<OutageRefusal, string>> = {
  ledger: "the gateway could not write its ledger",
  store: "the store of keys and the ledger was unreachable",
  limits_store: "the limits store was unreachable",
};

/** Clauses for the reasons to pass over a target. */
const SKIP_TEXTS = {
  open: "its circuit breaker was open",
  cooling: "it was at its limit or overloaded",
  quarantined: "it refused the gateway's key",
} as const;

function targetsText(targets: readonly TargetRefusal[]): string {
  const all = targets.map(({ upstream, why, wait_ms }) =>
    `${upstream} (${SKIP_TEXTS[why]}; ${secondsText(wait_ms)} s left)`
  );
  return `no target was available: ${all.join(", ")}`;
}

function ownerText(scope: LimitRefusal["scope"] | BudgetRefusal["scope"], id: string, { key }: Owners): string {
  if (scope === "key") return `key "${key}"`;
  if (scope !== "user") return `${scope} "${id}"`;
  return `${id === "" ? "requests without an end user" : `end user "${id}"`} of key "${key}"`;
}

/** Names the member of the configuration that sets the limit or budget, in parentheses. */
function settingText(
  scope: LimitRefusal["scope"] | BudgetRefusal["scope"],
  what: "limits" | "budget",
  { set_by }: EntryReason,
  { group }: Owners,
): string {
  if (set_by === undefined && (scope === "key" || scope === "user")) return "";
  if (scope === "user") return set_by === "key" ? " (user_budget of the key)" : ` (group ${group}, user_budget)`;
  if (scope !== "key") return ` (${what} of the ${scope})`;
  return set_by === "key" ? ` (${what} of its own)` : ` (group ${group}, key_${what})`;
}

const OUTCOME_TEXTS: Readonly<Record<string, string>> = {
  success: "answered",
  failure: "failed",
  unreachable: "no connection could be made",
  limited: "at its limit",
  overloaded: "overloaded",
  key_refused: "refused the gateway's key",
  rejected: "rejected the request",
  oversized: "sent an answer that was too large",
  broken: "broke off its answer",
  client_disconnected: "the client disconnected",
  unfit: "cannot serve the request",
};

/** Formats one line for each attempt, with what followed it. */
export function attemptLines(attempts: readonly EntryAttempt[]): string[] {
  return attempts.map((attempt, at) => {
    const { upstream, model, outcome, ms } = attempt;
    const next = attempts[at + 1];
    const then = next === undefined ? "" : `; ${nextText(attempt, next)}`;
    const ended = `${OUTCOME_TEXTS[outcome] ?? outcome} after ${ms} ms`;
    return `${at + 1}. ${upstream}, ${model}: ${ended}${factsText(attempt)}${then}`;
  });
}

/** Formats the known facts about the error of an attempt, in parentheses; empty if there are none. */
function factsText({ status, code, message, retry_after_ms: ms, request_id }: Partial<EntryAttempt>): string {
  const facts = [
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(code === undefined ? [] : [code]),
    ...(message === undefined ? [] : [`"${message}"`]),
    ...(ms === undefined ? [] : [`retry after ${secondsText(ms)} s`]),
    ...(request_id === undefined ? [] : [`request id ${request_id}`]),
  ];
  return facts.length === 0 ? "" : ` (${facts.join(", ")})`;
}

/** Formats one line for each target that was passed over. */
export function skippedLines(targets: readonly TargetRefusal[]): string[] {
  return targets.map(({ upstream, model, why, wait_ms }) =>
    `- ${upstream}, ${model}: not tried, ${SKIP_TEXTS[why]} (${secondsText(wait_ms)} s left)`
  );
}

function nextText({ upstream, model }: EntryAttempt, next: EntryAttempt): string {
  if (next.model !== model) return `the next model, ${next.model}, was tried`;
  return next.upstream === upstream ? "the upstream was tried again" : "the next target was tried";
}

/** Attempts at targets: their services, and their form in the log and the ledger. */
import { delay } from "../abort.ts";
import type { Meter } from "../billing/meter.ts";
import type { GatewayError } from "../errors.ts";
import type { Attempt, AttemptOptions, EndedAttempt } from "../routing/retry.ts";
import { describeCause } from "../server/cause.ts";
import type { EntryAttempt } from "../store/ledger.ts";
import { plainText } from "../text.ts";
import { recordFailure } from "./last_failures.ts";
import type { Routing } from "./targets.ts";

/** Most UTF-16 code units of the message of an attempt. */
const MESSAGE_CHARACTERS = 300;

/** Services that the attempts of every request use. */
export function attemptsWith<T>(
  gateway: Omit<Routing, "upstreams">,
  { requestId, signal, meter, choices, key, deadlineMs, once, ask, isOver }:
    & Pick<AttemptOptions<T>, "choices" | "key" | "deadlineMs" | "once" | "ask" | "isOver">
    & { requestId: string; signal: AbortSignal; meter: Pick<Meter, "attempted" | "skip"> },
): AttemptOptions<T> {
  const { health, config, observer, monotonic, now, random, log } = gateway;
  return {
    choices,
    key,
    deadlineMs,
    once,
    ask,
    isOver,
    health,
    most: config.routing.attempts,
    monotonic,
    random,
    pause: (ms) => delay(ms, signal),
    ended(attempt, ended) {
      const { model, target: { upstream } } = attempt;
      const { outcome, ms } = ended;
      if (outcome !== "unfit") observer.attempted({ upstream, model: model.id, outcome }, ms / 1000);
      meter.attempted(entryAttempt(attempt, ended));
    },
    skipped: (targets) => meter.skip(targets),
    failed({ target }: Attempt, error: GatewayError) {
      const { upstream, model } = target;
      const { kind, message, vendor, cause } = error;
      recordFailure(health, target, error, now());
      log({
        level: "warn",
        event: "target_failed",
        request_id: requestId,
        upstream,
        model,
        kind,
        // Errors of these kinds have texts of our own, without parts of a prompt or an answer.
        reason: message,
        ...(vendor !== undefined && {
          status: vendor.status,
          vendor_message: vendor.message,
          vendor_request_id: vendor.requestId,
        }),
        ...describeCause(cause),
        // A stack of the gateway has no facts about an upstream.
        stack: undefined,
      });
    },
  };
}

/** The entry of an attempt. A message that may quote the client's request is left out. */
function entryAttempt(
  { model, target: { upstream } }: Attempt,
  { outcome, ms, error, isClients = false }: EndedAttempt,
): EntryAttempt {
  const attempt: EntryAttempt = { upstream, model: model.id, outcome, ms: Math.round(ms) };
  if (error === undefined) return attempt;
  const { vendor } = error;
  const message = isClients ? undefined : vendor === undefined ? error.message : vendor.message;
  if (vendor !== undefined) attempt.status = vendor.status;
  if (vendor?.code !== undefined) attempt.code = vendor.code;
  if (message !== undefined) attempt.message = plainText(message, MESSAGE_CHARACTERS);
  if (vendor?.requestId !== undefined) attempt.request_id = vendor.requestId;
  return attempt;
}

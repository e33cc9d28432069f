/** The embedded model `fault`: misbehaves as the last user text asks. `docs/reference/faults.md` describes it. */
import { delay } from "../../abort.ts";
import type { ReplyEvent } from "../../protocols/canonical/types.ts";
import { ownTimeouts } from "../../catalog/timeouts.ts";
import { cutAnswerError, GatewayError, type LatePhase, upstreamTimeout } from "../../errors.ts";
import { answerEvents, type RequestedFault, requestedFault } from "../../fault/mod.ts";
import { writeJson } from "../../json/mod.ts";
import { yieldToEventLoop } from "../../scheduler.ts";
import { readFailure } from "../answers.ts";
import { UPSTREAM_CODECS } from "../protocols.ts";
import type { Incoming } from "../transport.ts";
import type { Answer, Call, EventFeed } from "../upstream.ts";

/** Events between two yields to the event loop, for endless answers. */
const EVENTS_PER_TURN = 64;

/** Longest delay of a timer, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Starts an answer of the model. The time limits of its row and its target apply as they would to a host. If the call's
 * signal is aborted, `read()` rejects with the signal's reason; after `cancel()` it returns `undefined`.
 */
export async function generateFault(call: Call): Promise<Answer> {
  const { prompt } = call;
  const fault = requestedFault(prompt, { model: call.model.id, scope: "embedded" });
  const clock = startClock(call);
  if (fault?.after === undefined) await playFaultBeforeAnswer(fault, { ...prompt, clock });
  return { type: "events", feed: createFeed(fault, clock) };
}

/** The parts of a call that faults need. */
type TimedCall = Pick<Call, "model" | "target" | "signal">;

/**
 * Plays the fault of an answer that is neither streamed nor a text, such as embeddings. Faults that only affect events
 * of a stream do nothing.
 * @throws {GatewayError} if the fault prevents an answer
 */
export async function playFaultOfWhole(fault: RequestedFault | undefined, call: TimedCall): Promise<void> {
  const clock = startClock(call);
  await playFaultBeforeAnswer(fault, { stream: false, protocol: "chat", clock });
  if (fault?.name === "slow") await clock.wait(fault.ms ?? 0, "no whole answer");
  if (fault?.name === "garbage" || fault?.name === "half-event" || fault?.name === "no-end") {
    throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a JSON object");
  }
}

/** Plays the faults that happen before the answer. @throws {GatewayError} if the fault prevents an answer */
async function playFaultBeforeAnswer(
  fault: RequestedFault | undefined,
  { stream, protocol, clock }: Pick<Call["prompt"], "stream" | "protocol"> & { clock: Clock },
): Promise<void> {
  switch (fault?.name) {
    case "status":
      throw await statusError(fault, protocol);
    case "error":
      throw await statusError({ ...fault, status: 500 }, protocol);
    case "refuse":
      throw new GatewayError("upstream", "Cannot reach the model's upstream", { fault: "unreachable" });
    case "cut":
      throw new GatewayError("upstream", "Cannot reach the model's upstream");
    case "stall":
      await clock.wait(fault.ms ?? Infinity, stream ? "no answer" : "no whole answer");
  }
}

/** Returns the error of an upstream's answer with the status of the fault. */
function statusError(
  { status = 500, retryAfter }: RequestedFault,
  protocol: Call["prompt"]["protocol"],
): Promise<GatewayError> {
  const message = `Rehearsal: status ${status}`;
  const body = writeJson({ error: { message, type: "rehearsal", code: null, param: null } });
  const incoming: Incoming = {
    status,
    header: (name) => name === "retry-after" && retryAfter !== undefined ? String(retryAfter) : null,
    read: () => Promise.resolve(undefined),
    text: () => Promise.resolve(body),
    release: () => {},
    cancel: () => {},
  };
  return readFailure(incoming, UPSTREAM_CODECS[protocol]);
}

function createFeed(fault: RequestedFault | undefined, clock: Clock): EventFeed {
  const events = answerEvents(fault);
  const after = fault?.after ?? 0;
  let sent = 0;
  let texts = 0;
  let over = false;
  const openEvents: ReplyEvent[] = [];

  /**
   * Plays the fault before the next delta.
   * @returns events to send instead of the delta; undefined to send the delta
   */
  async function playFault(): Promise<ReplyEvent[] | undefined> {
    switch (fault?.name) {
      case "stall":
        // Without `after`, the stall happened before the answer.
        if (fault.after !== undefined) await clock.wait(fault.ms ?? Infinity, "nothing more");
        return undefined;
      case "error":
        over = true;
        return [{ type: "error", error: new GatewayError("upstream", "Rehearsal: an error within the answer") }];
      case "cut":
        throw new GatewayError("upstream", "The upstream's answer broke off");
      case "garbage":
        throw new GatewayError("upstream", "Cannot read the upstream's answer: an event is not JSON");
      case "half-event":
        throw cutAnswerError();
    }
    return undefined;
  }

  return {
    async read() {
      if (over) return undefined;
      clock.check();
      if (++sent % EVENTS_PER_TURN === 0) await yieldToEventLoop();
      const { done, value } = events.next();
      if (done === true || over) return undefined;
      if (value.type === "open") {
        // An open block commits the answer, so it is held back until its first delta: a fault may come before it.
        openEvents.push(value);
        return await this.read();
      }
      if (value.type === "delta") {
        if (texts++ === after) {
          const instead = await playFault();
          if (instead !== undefined) return instead;
        }
        if (fault?.name === "slow") await clock.wait(fault.ms ?? 0, "nothing more");
      }
      if (value.type === "finish" && fault?.name === "no-end") {
        throw cutAnswerError();
      }
      return over ? undefined : [...openEvents.splice(0), value];
    },
    cancel() {
      over = true;
      clock.stop();
      events.return();
    },
  };
}

/** Waits within the time limits of one call. */
interface Clock {
  /**
   * Waits, but no longer than the limits allow.
   * @throws {GatewayError} `timeout`, or the reason of the call's signal
   */
  wait(ms: number, phase: LatePhase): Promise<void>;
  /** Checks the total time limit and the signal. @throws as `wait` */
  check(): void;
  /** Ends all waits. */
  stop(): void;
}

function startClock({ model, target, signal }: TimedCall): Clock {
  const timeouts = ownTimeouts({ model, target });
  const started = performance.now();
  const totalMs = timeouts.total_ms ?? Infinity;
  const stopped = new AbortController();
  const anyAbort = AbortSignal.any([signal, stopped.signal]);
  return {
    check() {
      signal.throwIfAborted();
      if (performance.now() - started >= totalMs) throw upstreamTimeout("no whole answer", totalMs);
    },
    stop: () => stopped.abort(),
    async wait(ms, phase) {
      const phaseMs = ownMs(phase) ?? Infinity;
      const leftMs = started + totalMs - performance.now();
      await delay(Math.min(ms, phaseMs, leftMs, MAX_TIMER_MS), anyAbort).catch(() => {});
      signal.throwIfAborted();
      if (stopped.signal.aborted || ms <= Math.min(phaseMs, leftMs)) return;
      throw phaseMs < leftMs ? upstreamTimeout(phase, phaseMs) : upstreamTimeout("no whole answer", totalMs);
    },
  };

  function ownMs(phase: LatePhase): number | undefined {
    if (phase === "nothing more") return timeouts.idle_ms;
    return phase === "no answer" ? timeouts.first_byte_ms : undefined;
  }
}

/** A simulated request that passes through the steps of the gateway, with random behaviour of everything outside. */
import { DISCONNECTED } from "../../../lib/request/request_meter.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Delivered, Meter } from "../../../lib/billing/meter.ts";
import type { AdmissionTerms } from "../../../lib/billing/reservation.ts";
import type { BilledTokens } from "../../../lib/store/ledger.ts";
import type { Random } from "../../support/random.ts";
import { Away } from "./calls.ts";
import { must } from "./checker.ts";
import { sheetOf } from "./shop.ts";
import { tokensOf, type Truth } from "./truth.ts";

/** Random choices of a request. */
export interface Road {
  random: Random;
  /** Waits until the simulation continues the request. */
  gate(): Promise<void>;
  /** Monotonic time in milliseconds. */
  monotonic(): number;
  /** Handles an answer that breaks off after its first byte; `again` opens another meter for its request. */
  broken: (truth: Truth, again: () => Meter) => Promise<void>;
  again(): Meter;
}

/** A truncated answer is free, and no other target is tried. */
export async function failBroken({ meter }: Truth): Promise<void> {
  await meter.fail(502, DISCONNECTED);
}

/** Serves a request to its end. */
export async function live(truth: Truth, { wish, road }: { wish: AdmissionTerms; road: Road }): Promise<void> {
  try {
    await serve(truth, { meter: truth.meter, wish, road });
  } catch (error) {
    truth.sawError = true;
    expected(error);
  }
  if (road.random.chance(0.1)) await endAgain(truth, road.random);
}

/** A second end of a request changes nothing, and charges nothing. */
async function endAgain({ id, meter, prompt }: Truth, random: Random): Promise<void> {
  if (!meter.ended) return;
  if (random.chance(0.3)) return await meter.fail(500, DISCONNECTED);
  const cost = await meter.deliver({ status: 200, ending: "end", tokens: tokensOf(prompt, 90), source: "counted" });
  must(cost === 0n, "I9", () => `${id} was ended twice, and the second end costs ${cost}`);
}

/** The error shown to a client. Bugs are rethrown. */
function expected(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof Away) return new GatewayError("internal", "The gateway failed", { cause: error });
  throw error;
}

async function serve(
  truth: Truth,
  { meter, wish, road }: { meter: Meter; wish: AdmissionTerms; road: Road },
): Promise<void> {
  const { random, gate } = road;
  if (random.chance(0.04)) return await meter.fail(400, DISCONNECTED);
  await gate();
  if (!await admit(truth, { meter, wish, road })) return;
  if (truth.repeats) return await repeat(truth);
  for (let tried = 0; tried < 3 && !meter.ended; tried++) {
    if (tried > 0 && !await turn(truth, { meter, random })) continue;
    if (meter.ended) return;
    const attempt = { upstream: random.pick(["first", "second", "third"]), outcome: "running" as const };
    meter.entry.beginAttempt(attempt.upstream);
    truth.attempts.push(attempt);
    await gate();
    if (meter.ended) return;
    if (random.chance(0.75)) return await stream(truth, { meter, road });
    conclude(truth, "failed");
  }
  await meter.fail(502, DISCONNECTED);
}

async function admit(
  truth: Truth,
  { meter, wish, road }: { meter: Meter; wish: AdmissionTerms; road: Road },
): Promise<boolean> {
  if (meter.ended) return false;
  truth.takenAt = road.monotonic();
  try {
    await meter.admit(wish);
    truth.admitted = true;
    return true;
  } catch (error) {
    truth.refusal = expected(error);
    await meter.fail(truth.refusal.status, DISCONNECTED);
    return false;
  }
}

/** Switches to another model after a failure, if there is one; false if its own limits are full. */
async function turn(truth: Truth, { meter, random }: { meter: Meter; random: Random }): Promise<boolean> {
  if (truth.others.length === 0) return true;
  const { customer, at, others, prompt } = truth;
  const other = random.pick(others);
  // Limits of keys and groups were taken already.
  const claims = customer.claims(other.ware, prompt).filter(({ name }) => name.startsWith("model:"));
  try {
    await meter.switchModel({
      model: other.ware.model,
      sheet: sheetOf(other.ware, { customer, at }),
      limitRequests: claims,
    });
  } catch (error) {
    const { kind, status } = expected(error);
    if (kind !== "limited") await meter.fail(status, DISCONNECTED);
    return false;
  }
  truth.answering = other;
  return true;
}

/** The answer was charged to the request that it was made for. */
async function repeat(truth: Truth): Promise<void> {
  const tokens = tokensOf(0, 0);
  truth.usage = tokens;
  const cost = await truth.meter.deliver({ status: 200, ending: "done", tokens, source: "none" });
  if (!truth.left) truth.terminal = { tokens, cost };
}

async function stream(truth: Truth, { meter, road }: { meter: Meter; road: Road }): Promise<void> {
  const { random, gate } = road;
  meter.entry.recordFirstOutput();
  for (let chunks = random.below(4); chunks > 0; chunks--) {
    truth.sent += 1 + random.below(20);
    truth.got = true;
    await gate();
    if (meter.ended) return;
    if (random.chance(0.06)) {
      conclude(truth, "failed");
      truth.sawError = true;
      return await road.broken(truth, road.again);
    }
  }
  await complete(truth, { meter, random });
}

/** The answer is complete: its end is not sent before the charge is durable. */
async function complete(truth: Truth, { meter, random }: { meter: Meter; random: Random }): Promise<void> {
  conclude(truth, "complete");
  const delivered = answerOf(truth, random);
  truth.usage = delivered.tokens;
  const cost = await meter.deliver(delivered);
  if (!truth.left) truth.terminal = { tokens: delivered.tokens, cost };
}

function conclude(truth: Truth, outcome: "failed" | "complete"): void {
  const attempt = truth.attempts.at(-1);
  if (attempt !== undefined) attempt.outcome = outcome;
}

/** The usage that the upstream reports: sometimes above its limit, or with cached tokens. */
function answerOf(truth: Truth, random: Random): Delivered {
  const { endpoint, prompt, sent } = truth;
  if (endpoint === "images.generations") {
    const images = 1 + random.below(3);
    const ending = images === 3 ? "done" : "partial";
    return { status: 200, ending, tokens: tokensOf(prompt, images * 20), source: "formula", images };
  }
  const overshoot = random.chance(0.08) ? 500 : 0;
  const tokens: BilledTokens = tokensOf(prompt, sent + random.below(20) + overshoot);
  if (random.chance(0.3)) {
    tokens.input_cache_read = tokens.prompt;
    tokens.input_cache_write_5m = random.below(5);
    tokens.input_cache_write_1h = random.below(5);
    tokens.prompt = random.below(10);
    tokens.reasoning = Math.min(3, tokens.completion);
  }
  const ending = random.pick(["end", "length", "tool_use", "stop_sequence", "refusal", "pause"] as const);
  return { status: 200, ending, tokens, source: random.pick(["upstream", "counted"] as const) };
}

/** The client disconnects: the received part is charged. */
export async function leave(truth: Truth): Promise<void> {
  const { meter, prompt, sent, got } = truth;
  truth.left = true;
  if (meter.ended || truth.drains) return;
  if (!got) return await meter.fail(499, DISCONNECTED);
  truth.sentWhenLeft = sent;
  try {
    await meter.deliver({
      status: 200,
      ending: "client_disconnected",
      tokens: tokensOf(prompt, sent),
      source: "counted",
    });
  } catch (error) {
    // The client has disconnected.
    expected(error);
  }
}

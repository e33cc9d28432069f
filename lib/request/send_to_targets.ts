/** Sends a text request to one target after another, until one of them answers. */
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { ReplyAggregator } from "../protocols/canonical/aggregate_events.ts";
import type { Reply } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import type { Meter } from "../billing/meter.ts";
import { memberNames } from "../observe/request_record.ts";
import type { Choice } from "../routing/plan.ts";
import type { Attempt, AttemptOptions } from "../routing/retry.ts";
import type { Answer, EventFeed, RelayedReply } from "../upstreams/upstream.ts";
import { fitContext } from "./fit_context.ts";
import { streamedAnswer } from "./open_stream.ts";
import type { AdmittedModel } from "./admit_request.ts";
import type { RequestState } from "./state.ts";
import type { StreamLoop } from "./stream_loop.ts";
import { tryTargets } from "./attempts.ts";

/** An answer that has begun, and the attempt that got it. */
export interface TargetAnswer {
  answer: Answer;
  admitted: AdmittedModel;
  attempt: Attempt;
  /** When the attempt began, by the gateway's `monotonic`; 0 if the client asked for no stream. */
  begunAt: number;
  /** Returns the size of the prompt in o200k tokens. */
  countInput: () => Promise<number>;
}

/** An answer that is not streamed. */
export interface TargetReply extends Pick<TargetAnswer, "admitted" | "countInput"> {
  reply: Reply | RelayedReply;
}

/**
 * Sends a request to one target after another until one returns a whole answer.
 * @throws {GatewayError} as `tryTargets`
 */
export function sendForReply(choices: readonly Choice[], state: RequestState): Promise<TargetReply> {
  return sendToTargets(choices, state, async (attempt) => {
    const { answer, admitted, countInput } = await callTarget(attempt, state);
    if (answer.type === "frames") throw new TypeError("Cannot give a stream to a client that asked for none");
    return { admitted, countInput, reply: answer.type === "text" ? answer.reply : await collectReply(answer.feed) };
  });
}

/**
 * Sends a request to one target after another until the loop has the first event of an answer.
 * @throws {GatewayError} as `sendForReply`
 */
export function sendForStream(choices: readonly Choice[], loop: StreamLoop, state: RequestState): Promise<void> {
  return sendToTargets(choices, state, async (attempt, answered) => {
    await loop.open(streamedAnswer(await callTarget(attempt, state), { state, answered }));
  });
}

async function sendToTargets<T>(
  choices: readonly Choice[],
  state: RequestState,
  send: AttemptOptions<T>["send"],
): Promise<T> {
  const { context: { gateway, requestId }, caller: { keyId: key }, signal, meter, meter: { entry } } = state;
  const isOver = () => signal.aborted || meter.ended || state.clientHasDisconnected;
  const answered = await tryTargets(gateway, { requestId, signal, entry, choices, key, send, isOver });
  const { conversation, attempt } = state;
  if (conversation !== undefined && attempt !== undefined) {
    const forMs = 60_000 * gateway.config.routing.affinity_minutes;
    gateway.conversations.remember(key, { id: conversation.id, target: attempt.target, forMs });
  }
  return answered;
}

/** Makes one attempt. @throws {GatewayError} if the target does not begin to answer */
async function callTarget(attempt: Attempt, state: RequestState): Promise<TargetAnswer> {
  const { codec, context: { gateway, record }, signal } = state;
  state.throwIfAborted();
  const { model, target } = attempt;
  const admitted = state.admittedAs(model);
  const { prompt, client, cap } = admitted;
  const upstream = gateway.upstreams.get(target.upstream);
  if (upstream === undefined) throw new GatewayError("overloaded", `Model "${model.id}" has no upstream`);
  await takeModelLimits(admitted, state.meter);
  const dropped = new UnsupportedParameters(client.responseContext, admitted.dropped.names);
  const fitted = await fitContext(prompt, {
    model,
    codec,
    checkedUpstream: upstream.checksContext,
    // An output limit that the gateway set is a maximum: the prompt need not leave that much room.
    maxTokens: cap === undefined ? prompt.maxTokens : undefined,
    signal,
  });
  state.beginAttempt(attempt, dropped);
  const { entry } = state.meter;
  entry.outputLimit = cap === undefined ? { requested: prompt.maxTokens } : { cap: cap.tokens };
  record.upstreamProtocol = upstream.protocolFor?.(prompt.protocol, target);
  const begunAt = prompt.stream ? gateway.monotonic() : 0;
  const { countInput } = fitted;
  const answer = await upstream.generate({ prompt: fitted.prompt, countInput, client, model, target, signal, dropped });
  entry.dropped = memberNames(dropped.names);
  state.forwarded = answer.forwarded;
  entry.vendorRequestId = answer.requestId;
  return { answer, admitted, attempt, begunAt, countInput };
}

/**
 * Reserves the limits of another model, and switches the meter to it.
 * @throws {GatewayError} `limited` with the fault `unfit`, so that the next model is tried
 */
export async function takeModelLimits(
  admitted: Pick<AdmittedModel, "model" | "sheet" | "extraPrices" | "limitRequests">,
  meter: Meter,
): Promise<void> {
  try {
    await meter.switchModel(admitted);
  } catch (error) {
    throw error instanceof GatewayError && error.kind === "limited" ? error.with({ fault: "unfit" }) : error;
  }
}

async function collectReply(feed: EventFeed): Promise<Reply> {
  const aggregator = new ReplyAggregator();
  try {
    for (let events = await feed.read(); events !== undefined; events = await feed.read()) {
      for (const event of events) aggregator.push(event);
    }
  } finally {
    feed.cancel();
  }
  return aggregator.end();
}

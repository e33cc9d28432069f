/** Sends a request for embeddings or reranking to one target after another. */
import { requireCaller } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import { memberNames } from "../observe/request_record.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { ClientWatch } from "../request/client_disconnect.ts";
import { droppedHeader } from "../request/write_response.ts";
import type { MeteredWork } from "../request/request_meter.ts";
import { takeModelLimits } from "../request/send_to_targets.ts";
import { headersOfAttempt, tryTargets } from "../request/attempts.ts";
import type { ProviderPreferences } from "../routing/preferences.ts";
import type { Attempt } from "../routing/retry.ts";
import type { RouteContext } from "../server/router.ts";
import type { AdmittedCandidate } from "./admit.ts";
import { drainRetrieval, planRetrievalTargets } from "./plan_targets.ts";
import type { RetrievalCall, RetrievalRequest, RetrievalUpstream } from "./types.ts";

/** A request to send. */
export interface RetrievalWork<R extends RetrievalRequest, A> {
  client: Request;
  context: RouteContext;
  metered: MeteredWork;
  admitted: readonly AdmittedCandidate<R>[];
  preferences: ProviderPreferences;
  call: (upstream: RetrievalUpstream, call: RetrievalCall<R>) => Promise<A>;
}

/** The answer of a target. */
export interface RetrievalAnswer<R extends RetrievalRequest, A> {
  answer: A;
  candidate: AdmittedCandidate<R>;
  /** True if the client has disconnected. The answer is still billed. */
  clientHasDisconnected: boolean;
}

/**
 * Sends a request to one target after another until one answers. Headers that name the last target are added to the
 * answer.
 * @throws {GatewayError} as `tryTargets`; the abort reason if the client disconnected and the answer is not drained
 */
export async function sendRetrieval<R extends RetrievalRequest, A>(
  work: RetrievalWork<R, A>,
): Promise<RetrievalAnswer<R, A>> {
  const { client, context, metered: { meter, interrupted } } = work;
  const { gateway, requestId } = context;
  const key = requireCaller(context.caller).keyId;
  const choices = planRetrievalTargets(work.admitted, { gateway, preferences: work.preferences, key });
  const upstreamCall = new AbortController();
  const signal = AbortSignal.any([interrupted, upstreamCall.signal]);
  let last: { attempt: Attempt; candidate: AdmittedCandidate<R> } | undefined;
  const watch = new ClientWatch(client, {
    stream: false,
    timers: context.timers,
    disconnected: () => last !== undefined && drainRetrieval(last.candidate, meter, context) || upstreamCall.abort(),
  });
  try {
    const answer = await tryTargets(gateway, {
      requestId,
      signal,
      entry: meter.entry,
      key,
      choices,
      isOver: () => signal.aborted || meter.ended || watch.hasDisconnected,
      async send(attempt) {
        signal.throwIfAborted();
        const candidate = work.admitted.find(({ model }) => model === attempt.model);
        const upstream = gateway.retrievalUpstreams.get(attempt.target.upstream);
        if (candidate === undefined || upstream === undefined) {
          throw new GatewayError("overloaded", `Model "${attempt.model.id}" has no upstream`);
        }
        await takeModelLimits(candidate, meter);
        last = { attempt, candidate };
        const { model, target } = attempt;
        meter.entry.beginAttempt(target.upstream, target);
        const dropped = new UnsupportedParameters();
        const answer = await work.call(upstream, {
          request: candidate.request,
          model,
          target,
          signal,
          dropped,
          identify: (requestId) => void (meter.entry.vendorRequestId = requestId),
        });
        meter.entry.dropped = memberNames(dropped.names);
        context.answerHeaders.push(...droppedHeader(dropped));
        return { answer, candidate };
      },
    });
    return { ...answer, clientHasDisconnected: watch.hasDisconnected };
  } finally {
    watch.stop();
    if (last !== undefined) context.answerHeaders.push(...headersOfAttempt(last.attempt, meter.entry));
  }
}

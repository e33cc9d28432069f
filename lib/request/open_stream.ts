/** Creates the stream loop of a text request, and prepares a target's answer for it. */
import { OtherAnswers } from "./other_answers.ts";
import { TargetMeasurement } from "./attempts.ts";
import type { TargetAnswer } from "./send_to_targets.ts";
import type { RequestState } from "./state.ts";
import { type StreamedAnswer, StreamLoop } from "./stream_loop.ts";
import { StreamMeter } from "./stream_meter.ts";
import { targetMs } from "./targets.ts";

/** Creates the stream loop of a request. It has no answer until `StreamLoop.open`. */
export function openStream(state: RequestState): StreamLoop {
  const { codec, context: { gateway: { config }, timers } } = state;
  return new StreamLoop({
    request: state,
    timers,
    keepAlive: codec.keepAlive,
    framing: codec.framing?.(),
    keepAliveMs: config.keep_alive_seconds * 1000,
    unreadMs: config.resource_limits.answer_unread_ms,
  });
}

/**
 * Combines an answer with its writer, its meter, and the measurement of its target.
 * @param parts `answered`: called with the first event
 */
export function streamedAnswer(
  { answer, admitted: { prompt, client }, attempt, begunAt, countInput }: TargetAnswer,
  { state, answered }: { state: RequestState; answered: () => void },
): StreamedAnswer {
  if (answer.type === "text") throw new TypeError("Cannot give a whole answer to a client that asked for a stream");
  const { codec, context: { gateway, record, keeper, requestId }, meter } = state;
  const { n = 1 } = prompt;
  const { backgroundTasks, observer, config } = gateway;
  const { entry } = meter;
  const shared = {
    totalMs: targetMs(attempt, config),
    target: new TargetMeasurement({ attempt, begunAt, requestId, entry, gateway, signal: state.signal, answered }),
    meter: new StreamMeter({
      meter,
      backgroundTasks,
      codec,
      countInput,
      prompt,
      others: n > 1 && answer.type === "frames" ? new OtherAnswers({ protocol: codec.protocol, n }) : undefined,
      request: state,
      stored: keeper?.written,
      noteFailure: (error) => observer.failed(record, error),
    }),
  };
  return answer.type === "frames"
    ? { feed: answer.feed, ...shared }
    : { feed: answer.feed, writer: codec.writer(client.responseContext), ...shared };
}

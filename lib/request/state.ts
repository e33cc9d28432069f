/** The state of one text request: the values that the steps of its life share. */
import { requireCaller } from "../access/caller.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { logFailure } from "../server/log_failure.ts";
import type { RouteContext } from "../server/router.ts";
import type { Meter } from "../billing/meter.ts";
import type { Codec, Frame } from "../protocols/codec.ts";
import type { Attempt } from "../routing/retry.ts";
import type { AdmittedModel, AdmittedModels } from "./admitted_model.ts";
import { ClientWatch } from "./client_watch.ts";
import { isCountable, type Shown } from "./countable.ts";
import { beginDrain } from "./draining.ts";
import { addLimitHeaders, CLIENT_LEFT, openRequestMeter, settleFailure } from "./request_meter.ts";
import { headersOfAttempt, targetMs } from "./targets.ts";

const NOTHING_SHOWN: Shown = { reasoning: false, input: false };

/** One text request, from its arrival to its entry in the ledger. */
export class RequestState {
  readonly codec: Codec;
  readonly request: Request;
  readonly context: RouteContext;
  readonly endpoint: Codec["protocol"];
  readonly meter: Meter;
  /** Ends the upstream call: the client leaves and its answer is not drained, or the process ends. */
  readonly #upstreamCall = new AbortController();
  #isInterrupted = false;
  #admitted: AdmittedModels | undefined;
  /** The attempt under way, or the last one; absent before the first. */
  #attempt: Attempt | undefined;
  /** Parameters that the target of the attempt does not support. */
  #dropped: UnsupportedParameters | undefined;
  #client: ClientWatch | undefined;
  /** The client has left, and its answer is read to its end all the same. */
  #isDraining = false;

  constructor(codec: Codec, request: Request, context: RouteContext) {
    this.codec = codec;
    this.request = request;
    this.context = context;
    this.endpoint = codec.protocol;
    this.meter = openRequestMeter(this, (reason) => {
      this.#isInterrupted = true;
      this.#upstreamCall.abort(reason);
    });
  }

  /** Id of the client's key. */
  get key(): string {
    return requireCaller(this.context.caller).keyId;
  }

  get signal(): AbortSignal {
    return this.#upstreamCall.signal;
  }

  /** Whether the process ends before the request does. */
  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  /** Whether the client is known to have left before there was a response. */
  get clientHasLeft(): boolean {
    return this.#client?.hasLeft === true;
  }

  /** The models that may answer, from admission on. */
  get admitted(): AdmittedModels {
    if (this.#admitted === undefined) throw new TypeError("Cannot route a request that was not admitted");
    return this.#admitted;
  }

  /** The request is admitted. From here on its client is watched until there is a response. */
  admit(admitted: AdmittedModels): void {
    this.#admitted = admitted;
    this.#client = new ClientWatch(this.request, {
      stream: admitted[0].prompt.stream,
      timers: this.context.timers,
      left: () => this.leaveUnanswered(),
    });
  }

  /** The row of the model that is asked; that of the first where it is none of them. */
  admittedAs(model: Model | undefined): AdmittedModel {
    return this.admitted.find((admitted) => admitted.model === model) ?? this.admitted[0];
  }

  /** No other target is asked for a client that left between two attempts. @throws the reason the request is given up for */
  throwIfAborted(): void {
    if (this.clientHasLeft) this.#upstreamCall.abort();
    this.signal.throwIfAborted();
  }

  /** A target is asked next. */
  beginAttempt(attempt: Attempt, dropped: UnsupportedParameters): void {
    this.#attempt = attempt;
    this.#dropped = dropped;
    this.meter.attempt(attempt.target.upstream);
  }

  /**
   * The client has left.
   * @returns true where the answer is read to its end all the same, within the time that its target may take
   */
  leave(shown: Readonly<Shown>): boolean {
    if (this.#isDraining || this.#attempt === undefined || this.signal.aborted) return this.#isDraining;
    const attempt = this.#attempt;
    const dropped = this.#dropped ?? new UnsupportedParameters();
    const { context, meter } = this;
    const { model } = attempt;
    const { prompt, sheet } = this.admittedAs(model);
    const countable = () => isCountable(prompt, { model, spoken: context.record.protocol, dropped }, shown);
    this.#isDraining = beginDrain({ model, sheet, isCountable: countable, meter }, context);
    if (!this.#isDraining) return false;
    const late = new GatewayError("timeout", "The upstream took too long for a client that has left");
    const ms = targetMs(attempt, context.gateway.config);
    const timer = context.timers.set(ms, () => this.#upstreamCall.abort(late));
    void meter.done.then(() => context.timers.clear(timer));
    return true;
  }

  /** The client has left before the answer began. */
  leaveUnanswered(): void {
    if (!this.meter.asked || !this.leave(NOTHING_SHOWN)) this.#upstreamCall.abort();
  }

  /** The client has left, and no target answers. */
  settleUnanswered(): void {
    this.context.gateway.backgroundTasks.add(this.meter.fail(CLIENT_LEFT));
  }

  /** No target answers, after the response has begun. @returns the frames that say so */
  failUnanswered(error: GatewayError): Frame[] {
    const { gateway, record } = this.context;
    gateway.observer.failed(record, error);
    gateway.backgroundTasks.add(this.meter.fail(200));
    logFailure(error, this.context);
    return this.errorFrames(error);
  }

  /** Frames that end a stream with an error before its answer has begun. */
  errorFrames(error: GatewayError): Frame[] {
    const writer = this.codec.writer(this.admitted[0].client.echo);
    return [...writer.push({ type: "error", error }), ...writer.end()];
  }

  /** The attempt under way, or the last one; absent before the first. */
  get attempt(): Attempt | undefined {
    return this.#attempt;
  }

  /** Parameters that the target of the attempt, or before it the first model, does not support. */
  get dropped(): UnsupportedParameters {
    return this.#dropped ?? this.admittedAs(this.#attempt?.model).dropped;
  }

  /** The one end of a request that fails before it has a response: it is settled without a charge. */
  async fail(thrown: unknown): Promise<GatewayError> {
    if (this.#attempt !== undefined) this.context.answerHeaders.push(...headersOfAttempt(this.#attempt));
    return await settleFailure(toGatewayError(thrown), this);
  }

  /** There is a response, whose body tells whether the client is there, or there will be none. */
  end(): void {
    this.#client?.stop();
    addLimitHeaders(this, this.meter);
  }
}

/** The state of one text request, which the steps in serve.ts share. */
import { type Caller, requireCaller } from "../access/permissions.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { logFailure } from "../server/finish_response.ts";
import type { AnswerHeader, RouteContext } from "../server/router.ts";
import type { Meter } from "../billing/meter.ts";
import type { Codec, Frame } from "../protocols/codec.ts";
import type { Attempt } from "../routing/retry.ts";
import type { AdmittedModel, AdmittedModels } from "./admit_request.ts";
import { type AnswerFacts, beginDrain, ClientWatch, isCountable } from "./client_disconnect.ts";
import { addLimitHeaders, failDisconnected, openRequestMeter, reasonOf, settleFailure } from "./request_meter.ts";
import { affinityOf, type Conversation } from "./conversation.ts";
import { headersOfAttempt } from "./attempts.ts";
import { targetMs } from "./targets.ts";

const NO_ANSWER: AnswerFacts = { reasoning: false, input: false };

/** One text request, from its arrival to its entry in the ledger. */
export class RequestState {
  readonly codec: Codec;
  readonly request: Request;
  readonly context: RouteContext;
  readonly endpoint: Codec["protocol"];
  readonly meter: Meter;
  /** The client's key. */
  readonly caller: Caller;
  /** Aborts the upstream call when the client disconnects (unless its answer is drained) and when the process ends. */
  readonly #upstreamCall = new AbortController();
  readonly signal = this.#upstreamCall.signal;
  #isInterrupted = false;
  #admitted: AdmittedModels | undefined;
  /** Its conversation; undefined if it has none, or if there is only one target to choose. */
  conversation: Conversation | undefined;
  #attempt: Attempt | undefined;
  #dropped = new UnsupportedParameters();
  #client: ClientWatch | undefined;
  /** Headers of the upstream that the client gets; undefined if there are none. */
  forwarded: readonly AnswerHeader[] | undefined;
  /** The error that the client gets. */
  #failure: GatewayError | undefined;
  /** True if the client has disconnected and its answer is read to the end for the bill. */
  #isDraining = false;

  constructor(codec: Codec, request: Request, context: RouteContext) {
    this.codec = codec;
    this.request = request;
    this.context = context;
    this.endpoint = codec.protocol;
    this.caller = requireCaller(context.caller);
    this.meter = openRequestMeter(this, (reason) => {
      this.#isInterrupted = true;
      this.#upstreamCall.abort(reason);
    });
  }

  /** True if the process is ending before the request is done. */
  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  /** The current or last attempt; undefined before the first. */
  get attempt(): Attempt | undefined {
    return this.#attempt;
  }

  /** Parameters that the current target does not support; before the first attempt, those of the first model. */
  get dropped(): UnsupportedParameters {
    return this.#dropped;
  }

  /** True once the client is known to have disconnected. */
  get clientHasDisconnected(): boolean {
    return this.#client?.hasDisconnected === true;
  }

  /** The admitted models. @throws {TypeError} before admission */
  get admitted(): AdmittedModels {
    if (this.#admitted === undefined) throw new TypeError("Cannot route a request that was not admitted");
    return this.#admitted;
  }

  /** Records the admitted models and starts to watch for a client that disconnects before the response. */
  admit(admitted: AdmittedModels): void {
    this.#admitted = admitted;
    this.#dropped = admitted[0].dropped;
    this.#client = new ClientWatch(this.request, {
      stream: admitted[0].prompt.stream,
      timers: this.context.timers,
      disconnected: () => this.drainOrCancel(),
    });
  }

  /** Returns the admitted entry of a model, or the first entry if there is none. */
  admittedAs(model: Model | undefined): AdmittedModel {
    const { admitted } = this;
    for (const entry of admitted) if (entry.model === model) return entry;
    return admitted[0];
  }

  /** Throws between two attempts if the client has disconnected or the process ends. @throws the abort reason */
  throwIfAborted(): void {
    if (this.clientHasDisconnected) this.#upstreamCall.abort();
    this.signal.throwIfAborted();
  }

  beginAttempt(attempt: Attempt, dropped: UnsupportedParameters): void {
    this.#attempt = attempt;
    this.#dropped = dropped;
    const { target } = attempt;
    this.meter.entry.beginAttempt(target.upstream, target, this.conversation && affinityOf(this.conversation, target));
  }

  /**
   * Begins to drain the answer of a client that has disconnected, if the bill depends on it.
   * @returns true if the answer is drained, within the target's time limit
   */
  drainForBill(facts: Readonly<AnswerFacts>): boolean {
    if (this.#isDraining || this.attempt === undefined || this.signal.aborted) return this.#isDraining;
    const { attempt, dropped, context, meter } = this;
    const { model } = attempt;
    const { prompt, sheet } = this.admittedAs(model);
    const countable = () =>
      isCountable(prompt, { model, upstreamProtocol: context.record.upstreamProtocol, dropped }, facts);
    this.#isDraining = beginDrain({ model, sheet, isCountable: countable, meter }, context);
    if (!this.#isDraining) return false;
    const late = new GatewayError("timeout", "The upstream took too long for a client that has disconnected");
    const ms = targetMs(attempt, context.gateway.config);
    const timer = context.timers.set(ms, () => this.#upstreamCall.abort(late));
    void meter.done.then(() => timer.stop());
    return true;
  }

  /** Drains or cancels the upstream call if the client disconnects before the answer has begun. */
  drainOrCancel(): void {
    if (!this.drainForBill(NO_ANSWER)) this.#upstreamCall.abort();
  }

  /** Settles a request whose client disconnected and that no target answered. */
  settleUnanswered(): void {
    this.context.gateway.backgroundTasks.add(failDisconnected(this.meter));
  }

  /** Settles a streamed response that no target answered. @returns the error frames for the client */
  failUnanswered(error: GatewayError): Frame[] {
    const { gateway, record } = this.context;
    gateway.observer.failed(record, error);
    gateway.backgroundTasks.add(this.meter.fail(200, reasonOf(error, this.context.caller)));
    logFailure(error, this.context);
    return this.errorFrames(error);
  }

  /** Returns the frames of an error in a stream without an answer. */
  errorFrames(error: GatewayError): Frame[] {
    return this.codec.writer(this.admitted[0].client.responseContext).push({ type: "error", error });
  }

  /** Settles a request that fails before its response, without a charge. */
  async fail(thrown: unknown): Promise<GatewayError> {
    if (this.attempt !== undefined) {
      this.context.answerHeaders.push(...headersOfAttempt(this.attempt, this.meter.entry));
    }
    this.#failure = toGatewayError(thrown);
    return await settleFailure(this.#failure, this);
  }

  /** Stops watching the request: from here on the response body reports a client that disconnects. */
  end(): void {
    this.#client?.stop();
    addLimitHeaders(this, { meter: this.meter, failure: this.#failure });
  }
}

/**
 * Notices clients that disconnect before a response, and decides whether answers are read to their end for the bill.
 */
import type { PhaseTimers, Timer } from "../phase_timers.ts";
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { modalityOf } from "../protocols/canonical/media.ts";
import { type ContentBlock, mayRunHostedTools, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { wantsThinking } from "../protocols/quirks/thinking.ts";
import type { RouteContext } from "../server/router.ts";
import { costsAnything } from "../billing/price.ts";
import type { Meter } from "../billing/meter.ts";
import type { PriceSheet } from "../store/ledger.ts";

/**
 * Time after which the abort signal of a request for a whole answer is read, in milliseconds: the first read costs 14
 * thousand instructions, and a fast answer is over by then. A client that disconnected earlier is noticed at that time,
 * too.
 */
const ASK_MS = 20;

/** Options of a client watch. */
export interface ClientWatchOptions {
  /** True: the client gets a stream, so that its signal is read at once. */
  stream: boolean;
  timers: PhaseTimers;
  /** Called once, when the client has disconnected. */
  disconnected: () => void;
}

/** The watch over the client of one request. */
export class ClientWatch {
  readonly #request: Request;
  readonly #timers: PhaseTimers;
  readonly #disconnected: () => void;
  readonly #timer: Timer | undefined;
  #signal: AbortSignal | undefined;

  constructor(request: Request, { stream, timers, disconnected }: ClientWatchOptions) {
    this.#request = request;
    this.#timers = timers;
    this.#disconnected = disconnected;
    if (stream) this.#readSignal();
    else this.#timer = timers.set(ASK_MS, () => this.#readSignal());
  }

  /** True once the client is known to have disconnected. */
  get hasDisconnected(): boolean {
    return this.#signal?.aborted === true;
  }

  /** Stops watching: the body of the response reports a client that disconnects, or there is no response. */
  stop(): void {
    if (this.#timer !== undefined) this.#timers.clear(this.#timer);
    this.#signal?.removeEventListener("abort", this.#disconnected);
  }

  #readSignal(): void {
    this.#signal = this.#request.signal;
    if (this.#signal.aborted) this.#disconnected();
    else this.#signal.addEventListener("abort", this.#disconnected, { once: true });
  }
}

/** Facts about the upstream request. */
export interface SentRequest {
  model: Pick<Model, "reasoning" | "architecture">;
  /** Protocol of the upstream; absent for embedded models. */
  upstreamProtocol: string | undefined;
  /** Parameters that the upstream does not support. */
  dropped: UnsupportedParameters;
}

/** Facts about the answer so far. */
export interface Shown {
  /** True if the upstream sent a reasoning block. */
  reasoning: boolean;
  /** True if the upstream reported the input tokens. */
  input: boolean;
}

/**
 * Returns true if the upstream can be cancelled when the client disconnects, because the sent events can be counted.
 * Returns false if there may be hidden output, or input that only the upstream can count. A whole answer shows nothing
 * before its end.
 */
export function isCountable(prompt: Prompt, request: SentRequest, received: Shown): boolean {
  if (!prompt.stream || received.reasoning || (prompt.n ?? 1) > 1 || mayRunHostedTools(prompt)) return false;
  // Only text is counted.
  if (request.model.architecture.output_modalities.some((modality) => modality !== "text")) return false;
  // Rejected prediction tokens are billed but not shown.
  if (mayReason(prompt, request) || prompt.unknownMembers?.members.prediction !== undefined) return false;
  return received.input || prompt.plain !== undefined || !prompt.messages.some(hasFile);
}

/** True if the model can reason and reasoning is not effectively disabled. */
function mayReason(
  { reasoning }: Prompt,
  { model: { reasoning: can }, upstreamProtocol, dropped }: SentRequest,
): boolean {
  if (can === undefined) return false;
  if (can.mandatory === true) return true;
  switch (wantsThinking(reasoning)) {
    case true:
      return true;
    case false:
      // If the upstream does not support the parameter, it is in `dropped`.
      return dropped.names.some((name) =>
        /^(reasoning|thinking|output_config|generationConfig\.thinkingConfig)/.test(name)
      );
    case undefined:
      // The messages protocol has budgeted thinking only on request. Everything else depends on the model.
      return upstreamProtocol !== "messages" || can.modes.includes("adaptive");
  }
}

/** True if the prompt has a file whose token count depends on the vendor. */
function hasFile({ blocks }: { blocks: readonly ContentBlock[] }): boolean {
  return blocks.some((block) => {
    if (block.type === "tool_result") return hasFile(block);
    if (block.type !== "media") return false;
    const modality = modalityOf(block.media, block.name);
    return modality !== "image" && (modality !== "text" || block.media.kind === "url");
  });
}

/** A request whose client has disconnected. */
export interface DisconnectedRequest {
  model: Pick<Model, "on_disconnect">;
  /** Prices of the request. */
  sheet: Readonly<PriceSheet>;
  /** True if the sent events can be counted. */
  isCountable: () => boolean;
  meter: Pick<Meter, "hasAttempted" | "done">;
}

/**
 * Begins to drain a request's upstream where the model wants it, and where not too many are drained already. It counts
 * until its meter has ended. A request that was not sent or costs nothing is not drained.
 * @returns false where the upstream is to be cancelled
 */
export function beginDrain(
  { model: { on_disconnect }, sheet, isCountable, meter }: DisconnectedRequest,
  { gateway, requestId }: Pick<RouteContext, "gateway" | "requestId">,
): boolean {
  const wants = on_disconnect === "drain" || (on_disconnect === "auto" && costsAnything(sheet) && !isCountable());
  if (!wants || !meter.hasAttempted) return false;
  const { config, drains, log } = gateway;
  const isBegun = drains.begin(meter.done, config.resource_limits.drained_requests);
  if (!isBegun) log({ level: "warn", event: "drain_limit_reached", request_id: requestId });
  return isBegun;
}

/**
 * Notices that a client disconnects before the response, and decides whether its answer is read to the end for the
 * bill.
 */
import type { PhaseTimer, PhaseTimers } from "../phase_timers.ts";
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { modalityOf } from "../protocols/canonical/media.ts";
import { type ContentBlock, mayRunHostedTools, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { wantsThinking } from "../protocols/quirks/thinking.ts";
import type { RouteContext } from "../server/router.ts";
import { costsAnything } from "../billing/price.ts";
import type { Meter } from "../billing/meter.ts";
import type { PriceSheet } from "../store/ledger.ts";

/** Options of a client watch. */
export interface ClientWatchOptions {
  /**
   * True if the client gets a stream. Its abort signal is read at once then, otherwise up to 20 ms later: the first read
   * costs 14,000 instructions, and a fast answer has ended by then. A client that has disconnected is noticed then.
   */
  stream: boolean;
  timers: PhaseTimers;
  /** Called once, when the client has disconnected. */
  disconnected: () => void;
}

/** Watches whether the client of one request disconnects. */
export class ClientWatch {
  readonly #request: Request;
  readonly #disconnected: () => void;
  readonly #timer: PhaseTimer | undefined;
  #signal: AbortSignal | undefined;

  constructor(request: Request, { stream, timers, disconnected }: ClientWatchOptions) {
    this.#request = request;
    this.#disconnected = disconnected;
    if (stream) this.#readSignal();
    else this.#timer = timers.set(0, () => this.#readSignal());
  }

  /** True once the client is known to have disconnected. */
  get hasDisconnected(): boolean {
    return this.#signal?.aborted === true;
  }

  /** Stops watching. From then on the body of the response reports a disconnect, or the request has failed. */
  stop(): void {
    this.#timer?.stop();
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
  /** Protocol of the upstream; undefined for embedded models. */
  upstreamProtocol: string | undefined;
  /** Parameters that the upstream does not support. */
  dropped: UnsupportedParameters;
}

/** Facts about the answer so far, which decide whether its cost can be counted. */
export interface AnswerFacts {
  /** True if the upstream sent a reasoning block. */
  reasoning: boolean;
  /** True if the upstream reported the input tokens. */
  input: boolean;
}

/**
 * Returns true if the upstream can be cancelled when the client disconnects, because the gateway can count the tokens
 * itself. Returns false if there may be hidden output, or input that only the upstream can count. An answer that is not
 * streamed shows nothing before its end.
 */
export function isCountable(prompt: Prompt, sent: SentRequest, facts: AnswerFacts): boolean {
  if (!prompt.stream || facts.reasoning || (prompt.n ?? 1) > 1 || mayRunHostedTools(prompt)) return false;
  // Only text is counted.
  if (sent.model.architecture.output_modalities.some((modality) => modality !== "text")) return false;
  // Rejected prediction tokens are billed but not shown.
  if (mayReason(prompt, sent) || prompt.unknownMembers?.members.prediction !== undefined) return false;
  return facts.input || prompt.plain !== undefined || !prompt.messages.some(hasFile);
}

/** Returns true if the model can reason and the request does not effectively disable reasoning. */
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

/** Returns true if a message has a file whose token count depends on the vendor. */
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
  sheet: Readonly<PriceSheet>;
  /** Returns true if the gateway can count the sent tokens itself. */
  isCountable: () => boolean;
  meter: Pick<Meter, "entry" | "done">;
}

/**
 * Begins to drain a request's upstream if the model's `on_disconnect` asks for it and not too many upstreams are being
 * drained. The drain counts against that limit until the request's meter has ended. A request that was not sent is not
 * drained. With `on_disconnect: "auto"`, neither is one that costs nothing or that the gateway can count.
 * @returns false if the upstream must be cancelled
 */
export function beginDrain(
  { model: { on_disconnect }, sheet, isCountable, meter }: DisconnectedRequest,
  { gateway, requestId, caller }: Pick<RouteContext, "gateway" | "requestId" | "caller">,
): boolean {
  const isWanted = on_disconnect === "drain" || (on_disconnect === "auto" && costsAnything(sheet) && !isCountable());
  if (!isWanted || meter.entry.attempts === 0) return false;
  const { config, drains, log } = gateway;
  const isBegun = drains.begin(meter.done, {
    max: config.resource_limits.drained_requests,
    keyId: caller?.keyId,
  });
  if (!isBegun) log({ level: "warn", event: "drain_limit_reached", request_id: requestId });
  return isBegun;
}

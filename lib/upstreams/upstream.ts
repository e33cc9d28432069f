/** The interface of upstreams for text: they take a prompt and return an answer. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { ContentBlock, Prompt, Protocol, ReplyEvent, ReplySummary } from "../protocols/canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { JsonDocument, ObjectText } from "../json/mod.ts";
import type { ResponseHeader } from "../http1/mod.ts";
import type { Frame, ResponseContext } from "../protocols/codec.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { Origin } from "../protocols/upstream_codec.ts";
import type { ContentFilter } from "../redact.ts";
import type { WholeAnswer } from "./answers.ts";
import type { Incoming, ResendableBody } from "./transport.ts";

/** The events of one answer. Nothing is produced before it is read. */
export interface EventFeed {
  /** Returns the next events, at least one; `undefined` after the last. */
  read(): Promise<ReplyEvent[] | undefined>;
  /** Ends the answer early and frees its resources. May be called at any time and repeatedly. */
  cancel(): void;
}

/** One step of a stream: frames for the client, and the events that they mean. */
export interface Step {
  frames: Frame[];
  events: ReplyEvent[];
  /** Number of frames up to and including the last one with content; absent: 0. */
  contentFrames?: number;
}

/** A stream of frames that are ready for the client. */
export interface FrameFeed {
  /** Returns the next step, which may have no frames; `undefined` after the last. */
  read(): Promise<Step | undefined>;
  /** Returns the frames that tell the client, in its protocol, that the answer has failed. */
  fail(error: GatewayError): Frame[];
  /** Ends the answer early, as `EventFeed.cancel`. */
  cancel(): void;
}

/** A relayed answer that is not streamed. */
export interface RelayedReply extends ReplySummary {
  /** The answer in the client's protocol, as JSON. */
  text: string;
  /** Reads the content. @throws {GatewayError} as `UpstreamCodec.readReply` */
  readBlocks(): Promise<ContentBlock[]>;
}

/** An answer, in one of three forms. */
export type Answer =
  & (
    /** Canonical events, which must still be written in the client's protocol. */
    | { type: "events"; feed: EventFeed }
    /** A relayed stream in the client's protocol. */
    | { type: "frames"; feed: FrameFeed }
    | { type: "text"; reply: RelayedReply }
  )
  & {
    /** Headers of the upstream for the client; absent if there are none. */
    forwarded?: readonly ResponseHeader[];
    /** The upstream's id of the request, for questions to its support; absent if it sent none. */
    requestId?: string | undefined;
  };

/** The client's request, for upstreams that speak its protocol. */
export interface ClientRequest {
  /** The parts of the request that an answer may repeat. */
  responseContext: ResponseContext;
  /** The body as the client wrote it. `scanned` is set if its contents are not parsed. */
  body: ObjectText & Pick<JsonDocument, "scanned">;
  /** Returns the value of a header; null if the request does not have it. */
  header: (name: string) => string | null;
}

/** One call of an upstream. */
export interface Call {
  prompt: Prompt;
  client: ClientRequest;
  model: Model;
  target: Target;
  /** Returns the size of the prompt in o200k tokens, media included. The prompt is counted at the first call. */
  countInput: () => Promise<number>;
  /** Aborts when the answer is no longer wanted: the client has disconnected, the process ends, or the time is up. */
  signal: AbortSignal;
  /** Collects the parameters that the upstream does not support. Complete when `generate` resolves. */
  dropped: UnsupportedParameters;
}

/** A source of answers. */
export interface Upstream {
  /** True if the upstream itself refuses prompts over the model's context. */
  readonly checksContext: boolean;
  /** Returns the issuer of the signatures in the answers of a target. */
  issuerOf(target: Target): string;
  /** Returns the protocol of requests to a target, by the protocol of the client; absent for embedded models. */
  protocolFor?(client: Prompt["protocol"], target: Target): string;
  /** Returns the lowest output limit that a target accepts, as `Dialect.minTokens`; absent: any number. */
  minTokens?(client: Prompt["protocol"], target: Target): number;
  /** Starts an answer. @throws {GatewayError} if it cannot start; with fault `unfit` if no request was sent */
  generate(call: Call): Promise<Answer>;
  /** Frees connections. */
  close(): void;
}

/** A request that is ready to be sent, and the readers of its answer. */
export interface UpstreamAttempt {
  protocol: Protocol;
  body: ResendableBody;
  /** Returns an error of the upstream with the client's names of parameters; absent: it has them already. */
  inClientTerms?(error: GatewayError): GatewayError;
  stream(incoming: Incoming): Answer;
  /** Reads an answer that is not streamed. @throws {GatewayError} as `UpstreamCodec.readReply` */
  readWhole(answer: WholeAnswer): Answer | Promise<Answer>;
}

/** The facts about an upstream that an attempt needs. */
export interface UpstreamAttemptOptions {
  protocol: Protocol;
  /** The vendor's differences in this protocol. */
  quirk: Quirk;
  origin: Origin;
  /** Removes the upstream's key from answers; undefined if there is no key. */
  filter: ContentFilter | undefined;
}

/** The interface of upstreams: from a prompt to an answer. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Prompt, Protocol, Reply, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { JsonDocument, ObjectText } from "../json/mod.ts";
import type { ResponseHeader } from "../http1/mod.ts";
import type { Echo, Frame, PrewrittenJson } from "../protocols/codec.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { Origin } from "../protocols/upstream_codec.ts";
import type { ContentFilter } from "../redact.ts";
import type { WholeAnswer } from "./answers.ts";
import type { Incoming, ResendableBody } from "./transport.ts";

/** Events of one answer, pulled by the reader: nothing is produced before it is asked for. */
export interface EventFeed {
  /** The next events, at least one; `undefined` after the last. */
  read(): Promise<ReplyEvent[] | undefined>;
  /** Ends the answer early and frees what it holds. Safe to call at any time, more than once. */
  cancel(): void;
}

/** One step of a stream: frames for the client, and the events that they mean. */
export interface Step {
  frames: Frame[];
  events: ReplyEvent[];
  /** Number of frames up to the last one with content; absent: 0. */
  contentFrames?: number;
}

/** A stream of frames that are ready for the client. */
export interface FrameFeed {
  /** The next step; `undefined` after the last. A step may bring no frame. */
  read(): Promise<Step | undefined>;
  /** Frames that tell the client, in its protocol, that the answer broke off. */
  fail(error: GatewayError): Frame[];
  /** As `EventFeed.cancel`. */
  cancel(): void;
}

/** An answer, in one of three forms. */
export type Answer =
  & (
    /** Events that the client's protocol has yet to write. */
    | { type: "events"; feed: EventFeed }
    /** A stream in the client's own protocol, passed through. */
    | { type: "frames"; feed: FrameFeed }
    /** A whole answer in the client's own protocol as JSON text, and its canonical form. */
    | { type: "text"; text: string; reply: Reply }
  )
  & {
    /** Headers of the upstream for the client; absent: none. */
    forwarded?: readonly ResponseHeader[];
    /** The upstream's id of the request, for its support. */
    requestId?: string | undefined;
  };

/** The request as it came, for upstreams that speak its protocol. */
export interface ClientRequest {
  echo: Echo;
  /** The body as it was written; `scanned` where its contents are not parsed. */
  body: ObjectText & Pick<JsonDocument, "scanned">;
  header: (name: string) => string | null;
}

/** One call of an upstream. */
export interface Call {
  prompt: Prompt;
  client: ClientRequest;
  model: Model;
  target: Target;
  /** Size of the prompt in o200k tokens, media included. Counted when first asked for. */
  countInput: () => Promise<number>;
  /** Aborted when the client has disconnected or the time is up. */
  signal: AbortSignal;
  /** Collects the parameters that the upstream does not support. Complete when `generate` resolves. */
  dropped: UnsupportedParameters;
}

/** A source of answers. */
export interface Upstream {
  /** True if the upstream itself refuses prompts over the model's context. */
  readonly checksContext: boolean;
  /** Issuer of the signatures in the answers of a target. */
  issuerOf(target: Target): string;
  /** The protocol of requests to a target, by the protocol of the client; absent for embedded models. */
  protocolFor?(client: Prompt["protocol"], target: Target): string;
  /** Fewest tokens that an answer of a target may be limited to, as `Dialect.minTokens`; absent: any number. */
  minTokens?(client: Prompt["protocol"], target: Target): number;
  /** Starts an answer. @throws {GatewayError} if it cannot start; with fault `unfit` if the upstream was not asked */
  generate(call: Call): Promise<Answer>;
  /** Frees connections. */
  close(): void;
}

/** A request that is ready to be sent, and the readers of its answer. */
export interface UpstreamAttempt {
  protocol: Protocol;
  body: ResendableBody;
  /** @throws {GatewayError} as `relayFeed` */
  stream(incoming: Incoming): Answer;
  /** @throws {GatewayError} as `UpstreamCodec.readReply` */
  writeWhole(answer: WholeAnswer, texts?: PrewrittenJson): Answer;
}

/** The upstream's part in an attempt. */
export interface UpstreamAttemptOptions {
  protocol: Protocol;
  /** The vendor's differences in this protocol. */
  quirk: Quirk;
  origin: Origin;
  filter: ContentFilter | undefined;
}

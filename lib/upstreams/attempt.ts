/** One attempt to have a call answered by an upstream. */
import type { Texts } from "../protocols/codec.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { Origin, UpstreamProtocol } from "../protocols/upstream_codec.ts";
import type { ContentFilter } from "../redact.ts";
import type { WholeAnswer } from "./answers.ts";
import type { Incoming, ResendableBody } from "./transport.ts";
import type { Answer } from "./upstream.ts";

/** A request that is ready to be sent, and the readers of its answer. */
export interface UpstreamAttempt {
  protocol: UpstreamProtocol;
  body: ResendableBody;
  /** @throws {GatewayError} as `relayFeed` */
  stream(incoming: Incoming): Answer;
  /** @throws {GatewayError} as `UpstreamCodec.readReply` */
  whole(answer: WholeAnswer, texts?: Texts): Answer;
}

/** The upstream's part in an attempt. */
export interface UpstreamAttemptOptions {
  protocol: UpstreamProtocol;
  quirk: Quirk;
  origin: Origin;
  filter: ContentFilter | undefined;
}

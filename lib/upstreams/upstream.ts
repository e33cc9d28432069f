/** What an upstream is to the pipeline: a prompt goes in, canonical events come out. */
import type { Dropped } from "../canonical/dropped.ts";
import type { Event, Prompt } from "../canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";

/** Events of one answer, pulled by the reader: nothing is produced before it is asked for. */
export interface EventFeed {
  /** The next events, at least one; `undefined` after the last. */
  read(): Promise<Event[] | undefined>;
  /** Ends the answer early and frees what it holds. Safe to call at any time, more than once. */
  cancel(): void;
}

/** One call of an upstream. */
export interface Call {
  prompt: Prompt;
  model: Model;
  target: Target;
  /** Size of the prompt in o200k tokens, media included. */
  inputTokens: number;
  /** Aborted when the client has gone or the time is up. */
  signal: AbortSignal;
  /** Collects what the upstream cannot do with this prompt. Complete when `generate` resolves. */
  dropped: Dropped;
}

/** A source of answers. */
export interface Upstream {
  /** Starts an answer. @throws {GatewayError} where it cannot even start */
  generate(call: Call): Promise<EventFeed>;
}

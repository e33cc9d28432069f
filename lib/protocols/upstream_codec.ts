/** A protocol from the upstream's side: prompts are written to it, answers are read from it. Pure, as the client's side. */
import type { UnsupportedParameters } from "./canonical/unsupported_parameters.ts";
import type { Machine, Prompt, Protocol, Reply, ReplyEvent } from "./canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { Json, JsonObject } from "../json/mod.ts";
import type { Frame, Texts } from "./codec.ts";

/** A protocol that an upstream speaks. Gemini is spoken to upstreams only. */
export type UpstreamProtocol = Protocol | "gemini";

/** The features of a protocol, or of a vendor's dialect of it. A prompt is adapted to them before it is written. */
export interface Dialect {
  /** Tools that take free text. False: they are wrapped as functions with one `input`, and unwrapped on return. */
  customTools: boolean;
  /** Tools in namespaces. False: the names are joined, and parted on return. */
  namespaces: boolean;
  /** Hosted tools of these protocols pass; all others are dropped and named. */
  hostedFrom: readonly Protocol[];
  /** Fewest tokens an answer may be limited to; the gateway enforces a lower limit itself. Absent: any. */
  leastTokens?: number;
  /** Most stop sequences the upstream takes; the gateway enforces the others itself. */
  stops: number;
  toolName: TextRule;
  callId: TextRule;
  /** Turns of one role are merged, and results come first in theirs. */
  alternates: boolean;
  /** The last turn may be the assistant's, to be continued. */
  prefill: boolean;
  /** `tool_result` blocks may hold media. False: it follows in a user turn. */
  mediaInResults: boolean;
  /** Unsigned reasoning text may be sent back, as DeepSeek and its kin want it. */
  unsignedReasoning: boolean;
  /** Signed reasoning may be sent back in `reasoning_details`, as OpenRouter wants it. Absent: chat has no place for it. */
  reasoningDetails?: boolean;
  /** Chat: prompt-cache marks may be sent. Absent: they are left out and named. */
  cacheMarks?: boolean;
}

/** The texts that are valid. */
export interface TextRule {
  /** Matches one legal character. */
  legal: RegExp;
  /** Most characters. */
  max: number;
  /** Exactly `max` characters, as Mistral wants its ids. */
  exact?: boolean;
}

/** The target of a prompt. */
export interface WriteTarget {
  /** The model's id at the upstream. */
  model: string;
  /** Facts about the model. */
  row: Model;
  /** The upstream can read signatures of this issuer only. */
  issuer: string;
  dialect: Dialect;
  /** Collects, in the client's words, what the protocol cannot say. */
  dropped: UnsupportedParameters;
}

/** The source of an answer. */
export interface Origin {
  /** Issuer of the signatures in it. */
  issuer: string;
  /** The service tier that its request asks for; absent: the plain one. */
  tier?: string;
  /** JSON text of inputs of its calls that was written beforehand, as that takes long; absent: none was. */
  texts?: Texts;
}

/** One protocol, from the upstream's side. */
export interface UpstreamCodec {
  readonly protocol: UpstreamProtocol;
  /** The features of the protocol at its own vendor. */
  readonly dialect: Dialect;
  /**
   * Writes a prompt that `adapt` (lib/protocols/translate) has fitted to the target's dialect.
   * Deterministic. Everything in the prompt is written, named in `target.dropped`, or refused.
   * @throws {GatewayError} `invalid`, where leaving something out would change the meaning
   */
  writePrompt(prompt: Prompt, target: WriteTarget): JsonObject;
  /** Reads a whole answer. @throws {GatewayError} `upstream`, or the error that came inside a 200 */
  readReply(body: JsonObject, origin: Origin): Reply;
  /**
   * Reads a streamed answer: its events obey `checkGrammar`, whatever the upstream does. A stream that is cut short ends
   * in an error event.
   */
  reader(origin: Origin): Machine<Frame, ReplyEvent>;
  /** Reads an error answer. Its message may reach the client, so it holds no address and no key. */
  readError(status: number, body: Json | undefined): GatewayError;
}

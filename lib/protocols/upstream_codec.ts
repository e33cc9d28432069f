/**
 * The interface of a protocol, from the upstream's side: writes prompts and reads answers. Pure, like the client's
 * side.
 */
import type { UnsupportedParameters } from "./canonical/unsupported_parameters.ts";
import type { Machine, Prompt, Protocol, Reply, ReplyEvent } from "./canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { Json, JsonObject } from "../json/mod.ts";
import type { Frame, Texts } from "./codec.ts";

/** Capabilities of a protocol, or of a vendor's dialect of it. Prompts are adapted to them before they are written. */
export interface Dialect {
  /** Supports tools with free text. False: they become functions with one argument, `input`. */
  customTools: boolean;
  /** Supports tools in namespaces. False: namespace and name are joined. */
  namespaces: boolean;
  /** Hosted tools of these protocols are passed on; others are dropped and named. */
  hostedFrom: readonly Protocol[];
  /** The upstream's minimum for the token limit; the gateway enforces lower limits itself. Absent: none. */
  minTokens?: number;
  /** Most stop sequences that the upstream accepts; the gateway enforces the others itself. */
  stops: number;
  toolName: TextRule;
  callId: TextRule;
  /** Messages of one role must be merged, with tool results first. */
  alternates: boolean;
  /** Supports a last message of the assistant, to be continued. */
  prefill: boolean;
  /** Supports media in tool results. False: they move to a user message. */
  mediaInResults: boolean;
  /** Accepts unsigned reasoning text back, as DeepSeek and compatible models require. */
  unsignedReasoning: boolean;
  /** Accepts signed reasoning back in `reasoning_details`, as OpenRouter does. */
  reasoningDetails?: boolean;
  /** Chat: accepts prompt-cache marks. Absent: they are dropped and named. */
  cacheMarks?: boolean;
}

/** A rule for valid texts. */
export interface TextRule {
  /** Matches one legal character. */
  legal: RegExp;
  /** Maximum length. */
  max: number;
  /** True: exactly `max` characters, as for Mistral's ids. */
  exact?: boolean;
}

/** The target of a prompt. */
export interface WriteTarget {
  /** The model's id at the upstream. */
  model: string;
  /** Facts about the model. */
  row: Model;
  /** The issuer whose signatures the upstream reads. */
  issuer: string;
  dialect: Dialect;
  /** Collects what the protocol cannot express, under the client's names. */
  dropped: UnsupportedParameters;
}

/** The source of an answer. */
export interface Origin {
  issuer: string;
  /** The requested service tier; absent: the default one. */
  tier?: string;
  /** JSON text of tool inputs that was written in advance because they are long. */
  texts?: Texts;
}

/** One protocol, from the upstream's side. */
export interface UpstreamCodec {
  readonly protocol: Protocol;
  /** Capabilities of the protocol at its own vendor. */
  readonly dialect: Dialect;
  /**
   * Writes an adapted prompt (lib/protocols/translate), in steps. Deterministic. Everything in the prompt is written,
   * named in `target.dropped`, or refused.
   * @throws {GatewayError} `invalid` if leaving something out would change the meaning
   */
  writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject>;
  /** Reads a whole answer. @throws {GatewayError} `upstream`, or the error inside a response with status 200 */
  readReply(body: JsonObject, origin: Origin): Reply;
  /**
   * Reads a streamed answer. Its events obey `checkGrammar`, whatever the upstream sends. A truncated stream ends with
   * an error event.
   */
  reader(origin: Origin): Machine<Frame, ReplyEvent>;
  /** Reads an error response. The message may reach the client, so it contains no address and no key. */
  readError(status: number, body: Json | undefined): GatewayError;
}

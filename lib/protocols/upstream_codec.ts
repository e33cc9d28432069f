/**
 * The interface of an upstream protocol: writes prompts, and reads answers and errors. Pure, like `Codec`, the
 * interface of a client protocol.
 */
import type { UnsupportedParameters } from "./canonical/unsupported_parameters.ts";
import type { Machine, Prompt, Protocol, Reply, ReplyEvent, ReplySummary } from "./canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { Json, JsonObject } from "../json/mod.ts";
import type { Frame, PrewrittenJson } from "./codec.ts";

/** Capabilities of a protocol, or of a vendor's dialect of it. Prompts are adapted to them before they are written. */
export interface Dialect {
  /** Supports tools with free-form input. False: they become functions with one argument, `input`. */
  customTools: boolean;
  /** Supports tools in namespaces. False: namespace and name are joined. */
  namespaces: boolean;
  /** Hosted tools of these protocols are passed on; others are dropped and reported. */
  hostedFrom: readonly Protocol[];
  /** The upstream's minimum of the token limit; the gateway enforces lower limits itself. Absent: there is none. */
  minTokens?: number;
  /** The number of stop sequences that the upstream accepts; the gateway enforces the others itself. */
  stops: number;
  toolName: TextRule;
  /** The rule for ids of tool calls. */
  callId: TextRule;
  /** Requires alternating roles: adjacent messages of one role are merged, with tool results first. */
  alternates: boolean;
  /** Continues a last message of the assistant. */
  prefill: boolean;
  /** Supports media in tool results. False: they move to a user message. */
  mediaInResults: boolean;
  /** Accepts unsigned reasoning of earlier answers, which DeepSeek and compatible models require. */
  unsignedReasoning: boolean;
  /** Accepts signed reasoning of earlier answers in `reasoning_details`, as OpenRouter does. */
  reasoningDetails?: boolean;
  /** Chat: accepts prompt-cache marks. Absent: they are dropped and reported. */
  cacheMarks?: boolean;
}

/** A rule for valid texts. */
export interface TextRule {
  /** Matches one legal character. */
  legal: RegExp;
  /** Maximum length, in UTF-16 code units. */
  max: number;
  /** True: exactly `max` characters, as for Mistral's ids. */
  exact?: boolean;
}

/** The target of a prompt. */
export interface WriteTarget {
  /** The model's id at the upstream. */
  model: string;
  /** The model's entry in the catalog. */
  row: Model;
  /** The issuer whose signatures the upstream reads. */
  issuer: string;
  dialect: Dialect;
  /** Collects what the protocol cannot express, for the header `x-sluice-dropped`. */
  dropped: UnsupportedParameters;
}

/** The target of a prompt and its protocol. */
export interface AdaptTarget extends WriteTarget {
  protocol: Protocol;
}

/** True if the model supports structured output. */
export function enforcesSchemas({ row }: Pick<WriteTarget, "row">): boolean {
  return ["structured_outputs", "response_format"].some((name) => row.supported_parameters.includes(name));
}

/** The source of an answer. */
export interface Origin {
  issuer: string;
  /** The requested service tier; absent: the default tier. */
  tier?: string;
  /** The JSON text of long tool inputs, written in advance; absent: they are written where they are read. */
  texts?: PrewrittenJson;
}

/** An upstream protocol for text. */
export interface UpstreamCodec {
  readonly protocol: Protocol;
  /** Capabilities of the protocol at its own vendor. */
  readonly dialect: Dialect;
  /**
   * Writes an adapted prompt (lib/protocols/translate), in steps. Deterministic. Everything in the prompt is written,
   * reported in `target.dropped`, or refused.
   * @throws {GatewayError} `invalid` if leaving something out would change the meaning
   */
  writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject>;
  /** Reads a whole answer. @throws {GatewayError} `upstream`, or the error that the answer contains */
  readReply(body: JsonObject, origin: Origin): Reply;
  /** Reads the summary of a whole answer. @throws {GatewayError} as `readReply`, but ignores faults of the content */
  readSummary(body: JsonObject, origin: Origin): ReplySummary;
  /**
   * Creates the reader of a streamed answer. Whatever the upstream sends, its events have the order that `ReplyEvent`
   * describes. A truncated stream ends with an error event.
   */
  reader(origin: Origin): Machine<Frame, ReplyEvent>;
  /** Reads an error response. The message may reach the client, so it contains no addresses and no keys. */
  readError(status: number, body: Json | undefined): GatewayError;
}

/** The interface of a client protocol: reads requests, and writes answers and errors. */
import type { z } from "zod";
import type { Machine, Prompt, Protocol, Reply, ReplyEvent, TokenUsage } from "./canonical/types.ts";
import type { GatewayError } from "../errors.ts";
import type { ContentSizes, JsonDocument, JsonObject } from "../json/mod.ts";
import type { ExtrasTable } from "./extras.ts";
import type { PlainContents } from "./plain_contents.ts";

/** One server-sent event. `data` contains no line break. */
export interface Frame {
  event?: string;
  data: string;
  /**
   * Long data, parsed in advance; `null` if it is not JSON, or too long to be parsed. Absent: the data is parsed where
   * it is needed.
   */
  read?: JsonDocument | null;
}

/** Returns whether the data of a frame is an object, by its first character. Marks such as `[DONE]` are none. */
export function isObjectFrame({ data }: Frame): boolean {
  // Upstreams may write white space before the object.
  return data.startsWith("{") || /^[ \t\r\n]*\{/.test(data);
}

/** The facts about the request and the gateway that a writer needs to write the answer. */
export interface ResponseContext {
  /** The gateway's id of the request, `[A-Za-z0-9]+`. All ids in the answer are derived from it. */
  requestId: string;
  /** When the request arrived, in Unix seconds. */
  createdAt: number;
  /** Returns when the answer was complete, in Unix seconds; absent: answers have the time `createdAt`. */
  completedAt?: () => number;
  /** Public id of the answering model. */
  model: string;
  /** True if the model reasons; absent: it does not. */
  reasons?: boolean;
  /** The request body as the client sent it. */
  request: JsonObject;
  prompt: Prompt;
  /** Stores the answer, so that later requests can refer to it; absent: they cannot. */
  keeper?: AnswerKeeper;
}

/** An answer that later requests may refer to. */
export interface KeptAnswer {
  id: string;
  /** The items as JSON text, each with its id if it has one. */
  output: readonly { id?: string; text: string }[];
}

/** Stores the answer of one request. */
export interface AnswerKeeper {
  /** Id of the previous answer, to which the request refers; absent: it refers to none. */
  readonly previousId?: string;
  /** True if later requests with the same key may refer to the answer. */
  readonly isStored: boolean;
  /** True if an earlier answer has this id; absent: answers are not stored. */
  isTaken?(id: string): boolean;
  /** Stores a complete answer; absent: answers are not stored. */
  keep?(answer: KeptAnswer): void;
  /** Returns a promise that resolves when other nodes can find the answer; absent or undefined: nothing to wait for. */
  written?(): Promise<void> | undefined;
}

/** An error response. */
export interface ErrorReply {
  status: number;
  headers: Record<string, string>;
  body: JsonObject;
}

/** The JSON text of objects that take long to write, by object. It is written in advance, in steps. */
export type PrewrittenJson = ReadonlyMap<JsonObject, string>;

/** The client's permissions that a reader of bodies needs. */
export interface ClientPermissions {
  /** True if the client may refer to files stored at the vendor. */
  vendorState: boolean;
  /**
   * Checks a tool that is defined inside the conversation.
   * @throws {GatewayError} `invalid` if the client may not use it
   */
  checkTool(tool: JsonObject, param: string): void;
  /**
   * Checks a part of the conversation that is passed on as it is, at any depth.
   * @throws {GatewayError} `invalid` if it needs a permission that the client lacks
   */
  checkItem(item: JsonObject, param: string): void;
}

/** Token counts of a request that exceeds a model's context window. */
export interface ContextCounts {
  input: number;
  /** The requested limit of output; 0: the client set none. */
  output: number;
  /** The model's context window. */
  limit: number;
}

/** Writes the frames of one stream as something else than server-sent events. */
export interface StreamFraming {
  readonly contentType: string;
  write(frames: readonly Frame[]): string;
  /** Returns the text after the last frame. */
  end(): string;
}

/** Reads bodies whose messages and tools have plain forms, which need not be decoded to be relayed. */
export interface PlainReader {
  /** The plain forms of messages and tools. */
  readonly contents: PlainContents;
  /**
   * Reads a body with plain contents, as `Codec.readPrompt`.
   * @param head the body without its contents
   * @param body returns the whole body; called at the first access to the prompt's messages or tools
   * @throws {GatewayError} as `Codec.readPrompt`
   */
  readPrompt(head: JsonObject, sizes: ContentSizes, body: () => JsonObject): Prompt;
}

/** A client protocol for text. Pure: no clock, no randomness, no I/O. */
export interface Codec {
  readonly protocol: Protocol;
  /** The schema of a request body, with types and ranges. Unknown members pass. */
  readonly schema: z.ZodObject<z.ZodRawShape, z.core.$loose>;
  /**
   * Checks the headers that the protocol requires; absent if it requires none.
   * @throws {GatewayError} `invalid`, if one is missing or has an invalid value
   */
  checkHeaders?(header: (name: string) => string | null): void;
  /**
   * Reads a body after the schema check.
   * @param permissions absent: no vendor state, and any tool
   * @throws {GatewayError} `invalid` for rules beyond the schema
   */
  readPrompt(body: JsonObject, permissions?: ClientPermissions): Prompt;
  /** `readPrompt` in steps, for long bodies. Absent: reading takes at most about 20 ms. */
  readSteps?(body: JsonObject, permissions?: ClientPermissions): Generator<void, Prompt>;
  /** Reads bodies whose contents are decoded only when needed; absent: all bodies are decoded at once. */
  readonly plain?: PlainReader;
  /** The features of a body that cost more than tokens or need permission. */
  readonly extras: ExtrasTable;
  /** Writes an answer that is not streamed. */
  writeReply(reply: Reply, context: ResponseContext): JsonObject;
  /** Creates the writer of a streamed answer. Its `end()` returns the frames that end the stream. */
  writer(context: ResponseContext): Machine<ReplyEvent, Frame>;
  /** Returns whether a frame reports the usage of the whole answer. */
  hasUsage(frame: Frame): boolean;
  /** Replaces the usage in the JSON text of a whole answer, or of a frame that has one. */
  withUsage(text: string, usage: TokenUsage): string;
  /**
   * Makes a frame with the usage from a frame `like` without usage, for clients that request it and upstreams that do
   * not report it. Absent if every complete stream of the protocol has the usage.
   */
  usageFrame?(like: Frame, usage: TokenUsage): Frame;
  writeError(error: GatewayError, requestId: string): ErrorReply;
  /** The text of a keep-alive in a stream: a comment, the protocol's ping, or white space. */
  readonly keepAlive: string;
  /** Creates the framing of a stream; absent: streams are server-sent events. */
  framing?(): StreamFraming;
  /** Returns the error for a request that exceeds the model's context, worded as the protocol's clients expect it. */
  contextError(counts: ContextCounts): GatewayError;
}

/** The interface of a protocol, from the client's side. */
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
  /** Result of reading long data in advance; absent: the data is parsed where it is needed. */
  read?: LongRead;
}

/** Long data, already parsed; `parsed` is `undefined` if it is not JSON, or beyond the size that is parsed. */
export interface LongRead {
  parsed: JsonDocument | undefined;
}

/** Facts that an answer repeats from its request, and facts of the gateway. */
export interface Echo {
  /** The gateway's id of the request, `[A-Za-z0-9]+`; all ids inside the answer derive from it. */
  requestId: string;
  /** Arrival of the request, in Unix seconds. */
  createdAt: number;
  /** Returns the time of completion in Unix seconds; absent: answers are dated `createdAt`. */
  completedAt?: () => number;
  /** Public id of the answering model. */
  model: string;
  /** The request body as the client sent it. */
  request: JsonObject;
  prompt: Prompt;
  /** Stores the answer for later references; absent: no request can refer to it. */
  keeper?: AnswerKeeper;
}

/** An answer that later requests may refer to. */
export interface KeptAnswer {
  id: string;
  /** The items as JSON text. `id` is absent if an item has none. */
  output: readonly { id?: string; text: string }[];
}

/** Stores the answer of one request. */
export interface AnswerKeeper {
  /** Id of the previous answer, as named by the client. */
  readonly previousId?: string;
  /** True if any later request of the key may refer to the answer. */
  readonly isStored: boolean;
  /** Stores a complete answer; absent: answers are not stored. */
  keep?(answer: KeptAnswer): void;
  /** Resolves when other nodes can find the answer; absent: there is nothing to wait for. */
  written?(): Promise<void> | undefined;
}

/** An error response. */
export interface ErrorReply {
  status: number;
  headers: Record<string, string>;
  body: JsonObject;
}

/** JSON text of objects in a body, written in advance because writing it takes long. */
export type Texts = ReadonlyMap<JsonObject, string>;

/** Permissions that apply while a body is read. */
export interface Permits {
  /** False: files stored at the vendor are refused. */
  vendorState: boolean;
  /**
   * Checks a tool defined inside the conversation.
   * @throws {GatewayError} `invalid` if the client may not use it
   */
  checkTool(tool: JsonObject, param: string): void;
  /**
   * Checks, at any depth, a part of the conversation that is passed on as it is.
   * @throws {GatewayError} `invalid` if it needs a permission that the client lacks
   */
  checkItem(item: JsonObject, param: string): void;
}

/** Token counts of a request that exceeds a model's context. */
export interface ContextCounts {
  input: number;
  /** Requested output; 0: no limit was requested. */
  output: number;
  /** The model's context window. */
  limit: number;
}

/** Writes the frames of one stream, where they are no server-sent events. */
export interface StreamFraming {
  readonly contentType: string;
  write(frames: readonly Frame[]): string;
  /** Text after the last frame. */
  end(): string;
}

/** Reads bodies with contents of usual forms. */
export interface PlainReader {
  /** The forms. */
  readonly contents: PlainContents;
  /**
   * Reads a body with plain contents, as `Codec.readPrompt`.
   * @param body decodes the contents at the first access to the prompt's messages or tools
   * @throws {GatewayError} as `Codec.readPrompt`
   */
  readPrompt(head: JsonObject, sizes: ContentSizes, body: () => JsonObject): Prompt;
}

/** One text protocol, from the client's side. Pure: no clock, no randomness, no I/O. */
export interface Codec {
  readonly protocol: Protocol;
  /** The request body: types and ranges. Unknown members pass. */
  readonly schema: z.ZodObject<z.ZodRawShape, z.core.$loose>;
  /**
   * Checks the headers that the protocol requires; absent if it requires none.
   * @throws {GatewayError} `invalid`
   */
  checkHeaders?(header: (name: string) => string | null): void;
  /**
   * Reads a body after the schema check.
   * @param permits absent: no vendor state, and any tool
   * @throws {GatewayError} `invalid` for rules beyond the schema
   */
  readPrompt(body: JsonObject, permits?: Permits): Prompt;
  /** `readPrompt` in steps, for long bodies. Absent: it takes at most some 20 ms. */
  readSteps?(body: JsonObject, permits?: Permits): Generator<void, Prompt>;
  /** Contents that are decoded only when needed; absent: all bodies are decoded at once. */
  readonly plain?: PlainReader;
  /** Features of a body that cost more than tokens. */
  readonly extras: ExtrasTable;
  writeReply(reply: Reply, echo: Echo): JsonObject;
  /** Writes a streamed answer. `end()` ends the stream as the protocol requires. */
  writer(echo: Echo): Machine<ReplyEvent, Frame>;
  /** Returns whether a frame reports the usage of the whole answer. */
  hasUsage(frame: Frame): boolean;
  /** Replaces the usage in the JSON text of a whole answer or of a frame with usage. */
  withUsage(text: string, usage: TokenUsage): string;
  /**
   * Returns a usage frame derived from a frame without usage; absent if every complete stream has one. For clients that
   * request usage.
   */
  usageFrame?(like: Frame, usage: TokenUsage): Frame;
  writeError(error: GatewayError, requestId: string): ErrorReply;
  /** Bytes of a keep-alive in a stream: a comment, the protocol's ping, or white space. */
  readonly keepAlive: string;
  /** Creates the framing of a stream; absent: server-sent events. */
  framing?(): StreamFraming;
  /** The error for a request that exceeds the model's context, worded as clients of the protocol expect it. */
  contextError(counts: ContextCounts): GatewayError;
}

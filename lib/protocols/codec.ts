/** What a protocol folder provides. */
import type { z } from "zod";
import type { Machine, Prompt, Protocol, Reply, ReplyEvent, TokenUsage } from "./canonical/types.ts";
import type { GatewayError } from "../errors.ts";
import type { ContentSizes, JsonDocument, JsonObject } from "../json/mod.ts";
import type { ExtrasTable } from "./extras.ts";
import type { PlainContents } from "./plain_contents.ts";

/** One server-sent event. `data` holds no line break. */
export interface Frame {
  event?: string;
  data: string;
  /** What the data says, where it was read beforehand as it is long; absent: it is to be read where it is needed. */
  read?: LongRead;
}

/** What long data says; `parsed` is `undefined` where that is not JSON, or more than is read. */
export interface LongRead {
  parsed: JsonDocument | undefined;
}

/** What an answer repeats of its request, and what only the gateway knows. */
export interface Echo {
  /** The gateway's id of the request, `[A-Za-z0-9]+`; every id inside the answer derives from it. */
  requestId: string;
  /** When the request came in, in Unix seconds. */
  createdAt: number;
  /** The time in Unix seconds, asked for when the answer is complete; absent: answers are dated `createdAt`. */
  completedAt?: () => number;
  /** Public id of the model that answers. */
  model: string;
  /** The request body as the client sent it. */
  request: JsonObject;
  /** The request as it was read. */
  prompt: Prompt;
  /** Keeps the answer for requests that refer to it; absent: nothing can. */
  keeper?: AnswerKeeper;
}

/** An answer that later requests may refer to. */
export interface KeptAnswer {
  id: string;
  /** Its items, each as JSON text. `id`: absent if an item has none. */
  output: readonly { id?: string; text: string }[];
}

/** Keeps the answer of one request. */
export interface AnswerKeeper {
  /** Id of the answer that the request continues, as the client named it. */
  readonly previousId?: string;
  /** True if any later request of the key may refer to the answer. */
  readonly isStored: boolean;
  /** Keeps an answer when it is complete; absent: answers are not kept. */
  keep?(answer: KeptAnswer): void;
  /** Resolves when other nodes can find the answer; absent: there is nothing to wait for. */
  written?(): Promise<void> | undefined;
}

/** An error as it goes out before anything else was sent. */
export interface ErrorReply {
  status: number;
  headers: Record<string, string>;
  body: JsonObject;
}

/** Objects of a body, written as JSON text. */
export type Texts = ReadonlyMap<JsonObject, string>;

/** What the caller of a reader lets a body name. */
export interface Permits {
  /** Files that the vendor keeps; false: they are refused. */
  vendorState: boolean;
  /**
   * Checks a tool that is defined inside the conversation.
   * @throws {GatewayError} `invalid`, where the client may not use it
   */
  checkTool(tool: JsonObject, param: string): void;
  /**
   * Checks, at any depth, a part of the conversation that is passed on unread.
   * @throws {GatewayError} `invalid`, where it asks for something that the client may not use
   */
  checkItem(item: JsonObject, param: string): void;
}

/** Why a request does not fit a model's context. All counts are in tokens. */
export interface ContextCounts {
  input: number;
  /** Output that the client asked for; 0: it named no limit. */
  output: number;
  /** The model's context window. */
  limit: number;
}

/** One text protocol, from the client's side. Pure: no clock, no random, no I/O. */
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
   * Writes as text the objects of a long body that are text in a prompt. The schema has accepted the body. Absent where the
   * protocol has no such objects.
   */
  writeTexts?(body: JsonObject): Promise<Texts>;
  /**
   * Reads a body that the schema has accepted.
   * @param texts what was written beforehand; the rest is written here
   * @param permits absent: no vendor state, and any tool
   * @throws {GatewayError} `invalid`, for what a schema cannot say
   */
  readPrompt(body: JsonObject, texts?: Texts, permits?: Permits): Prompt;
  /** Contents that need not be decoded before a step asks for them. */
  readonly plainContents: PlainContents;
  /**
   * Reads a body whose contents are plain, as `readPrompt`.
   * @param body decodes the contents when the prompt's messages or tools are first read
   * @throws {GatewayError} as `readPrompt`
   */
  readPlainPrompt(head: JsonObject, sizes: ContentSizes, body: () => JsonObject): Prompt;
  /** What a body can ask of a vendor beyond tokens. */
  readonly extras: ExtrasTable;
  /** Writes a whole answer. */
  writeReply(reply: Reply, echo: Echo): JsonObject;
  /** Writes a streamed answer. `end()` closes the stream the protocol's way. */
  writer(echo: Echo): Machine<ReplyEvent, Frame>;
  /** True for the frame of a stream that tells the usage of the whole answer. */
  tellsUsage(frame: Frame): boolean;
  /** The JSON text of a whole answer, or of a frame that tells the usage of one, with this usage in place of its own. */
  withUsage(text: string, usage: TokenUsage): string;
  /**
   * A frame that tells the usage, made after one that does not; absent if every complete stream has one. For streams
   * whose clients want to be told.
   */
  usageFrame?(like: Frame, usage: TokenUsage): Frame;
  /** Writes an error that comes before any other byte. */
  writeError(error: GatewayError, requestId: string): ErrorReply;
  /** What to send while there is nothing to say: a comment or the protocol's own ping, as bytes of the stream. */
  readonly heartbeat: string;
  /** The error for what does not fit the model's context, in the protocol's own words. */
  contextError(counts: ContextCounts): GatewayError;
}

/**
 * The canonical form of requests and answers. Readers of a protocol produce it, writers turn it into a protocol;
 * nothing here depends on a wire format.
 */
import type { GatewayError } from "../../errors.ts";
import type { CharCodes, JsonObject, RawNumber } from "../../json/mod.ts";

/** The text protocols of clients and upstreams. */
export const PROTOCOLS = ["chat", "responses", "messages", "gemini"] as const;

/** A text protocol of clients and upstreams. */
export type Protocol = typeof PROTOCOLS[number];

/** Maximum number of answers that one request can ask for: the limit of `n` in the Chat protocol. */
export const MAX_ANSWERS = 128;

/** Members of an object that the canonical form does not model, kept for their own protocol only. */
export interface UnknownMembers {
  from: Protocol;
  members: JsonObject;
}

/** An opaque value that signs or carries reasoning. Clients send it back; only its issuer can read it. */
export interface Signature {
  issuer: string;
  value: string;
  /** Id of the reasoning item, if the issuer's protocol has one. */
  id?: string;
}

/** An image or a file. */
export type Media =
  | { kind: "url"; url: string; mediaType?: string }
  | { kind: "bytes"; base64: string; mediaType: string };

/** The source of a piece of text, as the vendor's own citation object. Positions count from the start of the block. */
export interface Citation {
  from: Protocol;
  value: JsonObject;
}

/**
 * A token with its log probability, and the likeliest tokens in its place. Chat and responses have the same form:
 * `{token, logprob, bytes, top_logprobs}`.
 */
export type TokenLogprob = JsonObject;

/** A range of text, in code points. */
export interface TextRange {
  start: number;
  end: number;
}

/** A mark to cache the prompt up to here, with the lifetime of the cache entry. */
export interface CacheMark {
  ttl: "5m" | "1h";
}

/** Content of a message. */
export type ContentBlock =
  & { cache?: CacheMark; unknownMembers?: UnknownMembers }
  & (
    /** `logprobs`: the tokens of an answer's text. */
    | { type: "text"; text: string; citations?: Citation[]; logprobs?: TokenLogprob[] }
    | { type: "media"; media: Media; name?: string }
    /** `hidden`: the text was withheld or encrypted; only the signature contains it. */
    | { type: "reasoning"; text: string; hidden?: boolean; signature?: Signature }
    /**
     * `arguments` is JSON text, verbatim; for a custom tool (`custom: true`) the free-form input. `input` is the parsed
     * object, `null` if the text is not an object; absent: not parsed yet.
     */
    | {
      type: "tool_call";
      id: string;
      name: string;
      arguments: string;
      input?: JsonObject | null;
      custom?: boolean;
      namespace?: string;
    }
    /** `output`: as `input`, for the result's texts joined by line breaks. */
    | {
      type: "tool_result";
      callId: string;
      blocks: ContentBlock[];
      output?: JsonObject | null;
      isError?: boolean;
      custom?: boolean;
    }
    | { type: "refusal"; text: string }
    /** A block of one protocol that the canonical form does not model. */
    | { type: "vendor_specific"; from: Protocol; value: JsonObject }
  );

/** A block of one type. */
export type ContentBlockOf<T extends ContentBlock["type"]> = Extract<ContentBlock, { type: T }>;

/** One message. Tool results are blocks of user messages. */
export interface Message {
  role: "system" | "user" | "assistant";
  blocks: ContentBlock[];
  unknownMembers?: UnknownMembers;
}

/** A tool the model may call. */
export type Tool =
  & { unknownMembers?: UnknownMembers; cache?: CacheMark }
  & (
    | {
      type: "function";
      name: string;
      description?: string;
      /** JSON Schema of the arguments; absent: the tool takes none. */
      parameters?: JsonObject;
      strict?: boolean;
      namespace?: string;
    }
    /** Takes free-form text instead of JSON; `format` is the flat form `{type, syntax?, definition?}`. */
    | { type: "custom"; name: string; description?: string; format?: JsonObject; namespace?: string }
    /** Runs at the vendor, such as web search. */
    | { type: "hosted"; from: Protocol; value: JsonObject }
  );

/** The tools that the model may or must call. */
export type ToolChoice =
  | { type: "auto" }
  | { type: "none" }
  /** At least one call of any tool. */
  | { type: "required" }
  /** A call of this tool. */
  | { type: "tool"; name: string; custom?: boolean }
  /** `auto` or `required` among these tools only. */
  | { type: "allowed"; mode: "auto" | "required"; names: string[] }
  /** A choice of one protocol only, such as a hosted tool. */
  | { type: "vendor_specific"; from: Protocol; value: JsonObject };

/** Reasoning efforts, lowest first. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** Reasoning depth. */
export type Effort = typeof EFFORTS[number];

/** The client's reasoning options. Absent members were not set. */
export interface Reasoning {
  /** `manual` has a token budget, `adaptive` lets the model decide, `off` disables reasoning. */
  mode?: "manual" | "adaptive" | "off";
  budgetTokens?: number;
  effort?: Effort;
  /** The part of the reasoning text that is returned. */
  display?: "summarized" | "omitted" | "full";
  /** The signature must be returned, even if the protocol omits it by default. */
  encrypted?: boolean;
  unknownMembers?: UnknownMembers;
}

/** Form of the answer. */
export type OutputFormat =
  | { type: "text" }
  | { type: "json_object" }
  | {
    type: "json_schema";
    schema: JsonObject;
    name?: string;
    description?: string;
    strict?: boolean;
    /** True if the target cannot express the schema, so that the prompt asks for the format in words. */
    inWords?: true;
    /** True if the schema is that of an object around the client's, so that the answer must be taken out of it. */
    isWrapped?: true;
  };

/** Sampling parameters as the client sent them; the protocol's schema has checked their ranges. */
export interface Sampling {
  temperature?: number;
  topP?: number;
  topK?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  seed?: number | RawNumber;
  logitBias?: JsonObject;
  logprobs?: boolean;
  topLogprobs?: number;
}

/** A tool that runs at the vendor. */
export interface HostedTool {
  /** Plain name, as in the configuration and the prices. */
  name: string;
  /** The request's limit of calls of this tool; absent: there is none. */
  maxCalls?: number;
}

/** Service tiers at the default price, in any protocol. */
export const PLAIN_TIERS: ReadonlySet<string> = new Set(["default", "standard", "auto", "standard_only"]);

/** Features of a request that cost more than tokens and need permission. */
export interface Extras {
  hostedTools: readonly HostedTool[];
  /** The request's limit of calls of all hosted tools together; absent: there is none. */
  maxCalls?: number;
  /** True if the vendor calls MCP servers that the client names. */
  remoteMcp: boolean;
  /** A service tier with a price of its own. */
  tier?: string;
  /** The client's parameter that asks for the tier. */
  tierParameter?: string;
}

/** A request for text, of any protocol. */
export interface Prompt {
  protocol: Protocol;
  /** Public model id, as the client wrote it. */
  model: string;
  messages: Message[];
  tools: Tool[];
  toolChoice?: ToolChoice;
  /** False: at most one tool call per answer. */
  parallelToolCalls?: boolean;
  /** Limit of the answer's tokens, including reasoning. */
  maxTokens?: number;
  stop: string[];
  sampling: Sampling;
  reasoning?: Reasoning;
  format?: OutputFormat;
  /** Gemini: the texts of which the answer must be one. The members that ask for it are among the unknown ones. */
  choices?: string[];
  /** Number of answers, up to `MAX_ANSWERS`; absent: one. */
  n?: number;
  stream: boolean;
  /** Chat: the client asked for the usage chunk at the end of the stream. */
  includeUsage?: boolean;
  /** Chat: the request has members of OpenRouter's API. Vendors that do not know them get it translated. */
  openRouter?: boolean;
  truncation?: "auto" | "disabled";
  /** Provider preferences (`provider`), as sent. */
  provider?: JsonObject;
  /** Public ids of models to try if the first one fails (`models`). */
  fallbacks?: string[];
  /** Opaque id of the end user. */
  user?: string;
  /** Absent: the request uses nothing that costs more than tokens. */
  extras?: Extras;
  /** True if the request may refer to state at the vendor. */
  vendorState?: boolean;
  unknownMembers?: UnknownMembers;
  /** Present if messages and tools are plain, and so decoded only at the first access. Copies of the prompt lack it. */
  readonly plain?: PlainSizes;
}

/** Sizes of plain contents: only texts, images, the client's tools, their calls and results. */
export interface PlainSizes {
  /** Bytes of everything that a model reads, as JSON. */
  textBytes: number;
  /** Number of texts, names and schemas. */
  texts: number;
  messages: number;
  tools: number;
  /** All signatures: their bytes, number and issuer; absent: there are none. */
  signatures?: { bytes: number; count: number; issuer: string } | undefined;
  /** All images: their number, and a function that returns their base64; absent: there are none. */
  images?: { readonly count: number; read(): CharCodes[] } | undefined;
  /** True if a message has a form that some servers of the protocol do not support. */
  hasRareForms: boolean;
}

/** Returns whether a message has a result of a tool call. */
export function hasToolResult({ blocks }: Message): boolean {
  return blocks.some(({ type }) => type === "tool_result");
}

/** Returns whether the answer must be JSON. */
export function asksForJson({ format }: Pick<Prompt, "format">): boolean {
  return format !== undefined && format.type !== "text";
}

/**
 * True if the vendor may run tools or call servers while it answers. Such a request can cost more than its stream
 * shows.
 */
export function mayRunHostedTools({ extras }: Pick<Prompt, "extras">): boolean {
  return extras !== undefined && (extras.hostedTools.length > 0 || extras.remoteMcp);
}

/**
 * Tokens by price class. Input classes never overlap: cached tokens are not in `prompt`. `reasoning` is part of
 * `completion`. Absent means unknown, not zero.
 */
export interface TokenUsage {
  prompt?: number;
  input_cache_read?: number;
  input_cache_write_5m?: number;
  input_cache_write_1h?: number;
  completion?: number;
  reasoning?: number;
  /**
   * Present if the gateway counted some of the tokens, because the upstream did not report them; `estimated` if these
   * include images or files.
   */
  counted?: true | "estimated";
  /** Service tiers reported by the upstream. The default one is included only if the request named another. */
  tiers?: readonly string[];
  /** Calls of hosted tools that the upstream reported, by plain name. */
  hostedCalls?: Readonly<Record<string, number>>;
}

/** The token counts of a usage. */
export type UsageClass = Exclude<keyof TokenUsage, "counted" | "tiers" | "hostedCalls">;

/**
 * Reason for the end of an answer. `tool_use` exactly if a complete tool call exists (`length` excepted);
 * `stop_sequence` comes with the matched string; `pause`: the vendor interrupted a long answer, which the client sends
 * back unchanged to continue it.
 */
export type FinishReason = "end" | "stop_sequence" | "length" | "tool_use" | "refusal" | "pause";

/** The parts of a whole answer that the gateway needs to bill it, if the upstream reports its usage. */
export interface ReplySummary {
  finish: FinishReason;
  usage: TokenUsage;
}

/** A whole answer. */
export interface Reply extends ReplySummary {
  /** The upstream's id, if it gave one. */
  id?: string;
  blocks: ContentBlock[];
  /** The string that ended the answer, with `finish: "stop_sequence"`. */
  stopSequence?: string;
}

/** The known facts about a block before its text. */
export type OpenBlock =
  | { type: "text" }
  | { type: "reasoning"; hidden?: boolean }
  | { type: "tool_call"; id: string; name: string; custom?: boolean; namespace?: string }
  | { type: "refusal" }
  | { type: "vendor_specific"; from: Protocol; value: JsonObject };

/**
 * An event of an answer. Every stream has the same order: one start; blocks with indices from 0, one open at a
 * time, all closed; then one finish or error.
 */
export type ReplyEvent =
  /** `usage` has the input counts that are known before the answer. */
  | { type: "start"; id?: string; usage?: TokenUsage }
  | { type: "open"; index: number; block: OpenBlock }
  /** A non-empty piece of the block's text or arguments. */
  | { type: "delta"; index: number; text: string }
  | { type: "citation"; index: number; citation: Citation }
  /** Tokens of the delta that follows in the same block. */
  | { type: "logprobs"; index: number; tokens: readonly TokenLogprob[] }
  /** A signature is known only when its block ends. */
  | { type: "close"; index: number; signature?: Signature }
  /** `usage` covers the whole answer. */
  | { type: "finish"; reason: FinishReason; stopSequence?: string; usage: TokenUsage }
  | { type: "error"; error: GatewayError };

/** Returns the event of a piece of text; none for an empty piece. */
export function deltaOf(index: number, text: string): ReplyEvent[] {
  return text === "" ? [] : [{ type: "delta", index, text }];
}

/** Changes the events of one answer: returns the events in the place of the next one. */
export type EventTransform = (event: ReplyEvent) => ReplyEvent[];

/** A synchronous state machine for a stream. Call `push` for each input, then `end` once. */
export interface Machine<In, Out> {
  push(input: In): Out[];
  end(): Out[];
}

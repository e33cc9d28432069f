/**
 * The canonical form: what the three text protocols have in common, and what each says that the others do not.
 * Readers turn a protocol into it, writers turn it back. Nothing here knows a wire.
 */
import type { GatewayError } from "../../errors.ts";
import type { JsonObject, RawNumber } from "../../json/mod.ts";

/** A text protocol that clients and upstreams speak. */
export type Protocol = "chat" | "responses" | "messages";

/** Members of an object that the canonical form does not model, kept for their own protocol only. */
export interface UnknownMembers {
  from: Protocol;
  members: JsonObject;
}

/** Opaque reasoning token. Only its issuer can read it. */
export interface Signature {
  issuer: string;
  value: string;
  /** Id of the reasoning item, where the issuer's protocol has one. */
  id?: string;
}

/** An image or a file. */
export type Media =
  | { kind: "url"; url: string; mediaType?: string }
  | { kind: "bytes"; base64: string; mediaType: string };

/** Where a piece of text comes from: the vendor's own citation object, whole. */
export interface Citation {
  from: Protocol;
  value: JsonObject;
}

/** A prompt-cache mark. */
export interface CacheMark {
  ttl: "5m" | "1h";
}

/** One thing said in a message. */
export type ContentBlock =
  & { cache?: CacheMark; unknownMembers?: UnknownMembers }
  & (
    | { type: "text"; text: string; citations?: Citation[] }
    | { type: "media"; media: Media; name?: string }
    /** `hidden`: the text was withheld or encrypted; only the signature carries it. */
    | { type: "reasoning"; text: string; hidden?: boolean; signature?: Signature }
    /**
     * `arguments` is JSON text, verbatim; for a custom tool (`custom: true`) it is the tool's free-form input. `input` is
     * the object that this text says, and `null` where it says none, for whoever writes it; absent: the text is to be read.
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
    /** `output`: as `input`, of what all its texts say, a line each. */
    | {
      type: "tool_result";
      callId: string;
      blocks: ContentBlock[];
      output?: JsonObject | null;
      isError?: boolean;
      custom?: boolean;
    }
    | { type: "refusal"; text: string }
    /** A block of its own protocol that the canonical form does not model, whole. */
    | { type: "vendor_specific"; from: Protocol; value: JsonObject }
  );

/** A block of one type. */
export type ContentBlockOf<T extends ContentBlock["type"]> = Extract<ContentBlock, { type: T }>;

/** One turn. Results of tools are blocks of user messages. */
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
    /** Runs at the vendor (web search and the like): its own object, whole. */
    | { type: "hosted"; from: Protocol; value: JsonObject }
  );

/** Which tools the model may or must call. */
export type ToolChoice =
  | { type: "auto" }
  | { type: "none" }
  /** At least one call of any tool. */
  | { type: "required" }
  /** A call of this tool. */
  | { type: "tool"; name: string; custom?: boolean }
  /** `auto` or `required` among these tools only. */
  | { type: "allowed"; mode: "auto" | "required"; names: string[] }
  /** A choice of its own protocol, such as a hosted tool. */
  | { type: "vendor_specific"; from: Protocol; value: JsonObject };

/** How much to think, least first. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** Reasoning depth. */
export type Effort = typeof EFFORTS[number];

/** What the client asked about reasoning. Every member is absent where the client said nothing. */
export interface Reasoning {
  /** `manual` has a token budget, `adaptive` lets the model decide, `off` is an explicit no. */
  mode?: "manual" | "adaptive" | "off";
  budgetTokens?: number;
  effort?: Effort;
  /** How much of the reasoning text to return. */
  display?: "summarized" | "omitted" | "full";
  /** The signature must come back with the reasoning, even where the protocol leaves it out by default. */
  encrypted?: boolean;
  unknownMembers?: UnknownMembers;
}

/** The form the answer must have. */
export type OutputFormat =
  | { type: "text" }
  | { type: "json_object" }
  | { type: "json_schema"; schema: JsonObject; name?: string; description?: string; strict?: boolean };

/** Sampling knobs, as the client sent them; ranges were checked by the protocol's schema. */
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

/** A tool that runs at the vendor, as a request names it. */
export interface HostedTool {
  /** Its plain name, as the configuration and prices have it. */
  name: string;
  /** Most calls, where the request says so. */
  maxCalls?: number;
}

/** Names of service tiers that cost the plain price, in the words of any protocol. */
export const PLAIN_TIERS: ReadonlySet<string> = new Set(["default", "standard", "auto", "standard_only"]);

/** What a request asks of its vendor beyond tokens, and may: the rest was taken out of it. */
export interface Extras {
  hostedTools: readonly HostedTool[];
  /** Most calls of all hosted tools together, where the request says so. */
  maxCalls?: number;
  /** The vendor calls servers of the client's choice. */
  remoteMcp: boolean;
  /** A service tier with a price of its own. */
  tier?: string;
}

/** A request for text, whatever protocol it came in. */
export interface Prompt {
  /** The protocol the client spoke. */
  protocol: Protocol;
  /** Public model id, as the client wrote it. */
  model: string;
  messages: Message[];
  tools: Tool[];
  toolChoice?: ToolChoice;
  /** False: at most one tool call per answer. */
  parallelToolCalls?: boolean;
  /** Most tokens the answer may have, reasoning included. */
  maxTokens?: number;
  stop: string[];
  sampling: Sampling;
  reasoning?: Reasoning;
  format?: OutputFormat;
  /** Number of answers wanted; absent: one. */
  n?: number;
  stream: boolean;
  /** Chat: the client wants the usage chunk at the end of the stream. */
  includeUsage?: boolean;
  truncation?: "auto" | "disabled";
  /** Routing wishes of this request (`provider`), as sent. */
  provider?: JsonObject;
  /** Public ids to try when the first model fails (`models`). */
  fallbacks?: string[];
  /** Opaque id of the end user. */
  user?: string;
  /** Absent: tokens are all it costs. */
  extras?: Extras;
  /** The client may name what the vendor keeps; absent: it may not. */
  vendorState?: boolean;
  unknownMembers?: UnknownMembers;
}

/**
 * Whether the vendor may run tools or call servers while it answers. Such a request can cost more than its client sees as
 * the answer is made.
 */
export function mayRunHostedTools({ extras }: Pick<Prompt, "extras">): boolean {
  return extras !== undefined && (extras.hostedTools.length > 0 || extras.remoteMcp);
}

/**
 * Tokens by price class. Input classes never overlap: what was read from a cache is not in `prompt`.
 * `reasoning` is part of `completion`. Absent means not known, which is not zero.
 */
export interface TokenUsage {
  prompt?: number;
  input_cache_read?: number;
  input_cache_write_5m?: number;
  input_cache_write_1h?: number;
  completion?: number;
  reasoning?: number;
  /** Some of it was counted here, as the upstream did not tell it: of images and files only an estimate. */
  counted?: true | "estimated";
  /** Service tiers that the upstream says it used. The plain one is named only where the request asks for another. */
  tiers?: readonly string[];
  /** Calls of hosted tools that the upstream says it made, by plain name. */
  hostedCalls?: Readonly<Record<string, number>>;
}

/** The classes of tokens in a usage. */
export type UsageClass = Exclude<keyof TokenUsage, "counted" | "tiers" | "hostedCalls">;

/**
 * Why an answer ended. `tool_use` exactly when a complete tool call exists, `length` excepted.
 * `stop_sequence` names the matched string beside it. `pause`: a vendor's long turn, to be sent back as it is.
 */
export type FinishReason = "end" | "stop_sequence" | "length" | "tool_use" | "refusal" | "pause";

/** A whole answer. */
export interface Reply {
  /** The upstream's id, where it gave one. */
  id?: string;
  blocks: ContentBlock[];
  finish: FinishReason;
  /** The string that ended the answer, with `finish: "stop_sequence"`. */
  stopSequence?: string;
  usage: TokenUsage;
}

/** A block as it opens: everything that is known before its text. */
export type OpenBlock =
  | { type: "text" }
  | { type: "reasoning"; hidden?: boolean; unknownMembers?: UnknownMembers }
  | { type: "tool_call"; id: string; name: string; custom?: boolean; namespace?: string }
  | { type: "refusal" }
  | { type: "vendor_specific"; from: Protocol; value: JsonObject };

/**
 * One step of an answer. The order is fixed by `grammar.ts`: one start; blocks opened with indices counting from 0 and
 * closed before the end, one open at a time; then one finish or error, and nothing after it.
 */
export type ReplyEvent =
  /** `usage` here is what is known of the input before the answer begins. */
  | { type: "start"; id?: string; usage?: TokenUsage }
  | { type: "open"; index: number; block: OpenBlock }
  /** A piece of the block's text or arguments. Never empty. */
  | { type: "delta"; index: number; text: string }
  | { type: "citation"; index: number; citation: Citation }
  /** A signature is known only when its block ends. */
  | { type: "close"; index: number; signature?: Signature }
  /** `usage` is of the whole answer, cumulative. */
  | { type: "finish"; reason: FinishReason; stopSequence?: string; usage: TokenUsage }
  | { type: "error"; error: GatewayError };

/** A synchronous translator of a stream. `frames.flatMap(m.push)`, then `m.end()`, is its whole use. */
export interface Machine<In, Out> {
  push(input: In): Out[];
  end(): Out[];
}

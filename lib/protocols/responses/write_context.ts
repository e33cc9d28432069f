import type { ContentBlock, Prompt, Protocol, UnknownMembers } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** A prompt being written. */
export interface ResponsesWriteContext {
  /** True if the client speaks this protocol too: its members are written unchanged. */
  own: boolean;
  target: WriteTarget;
  /** The client's names of parameters that may be dropped. */
  names: Readonly<Names>;
  /** Ids of custom tool calls. */
  customCalls: ReadonlySet<string>;
}

/** Parameter names of a client's protocol. */
interface Names {
  stop: string;
  effort: string;
  off: string;
  verbosity: string;
  reasoning: string;
  citations: string;
  fileName: string;
}

const NAMES: Readonly<Record<Protocol, Names>> = {
  chat: {
    stop: "stop",
    effort: "reasoning_effort",
    off: "reasoning_effort",
    verbosity: "verbosity",
    reasoning: "reasoning_details",
    citations: "annotations",
    fileName: "filename",
  },
  responses: {
    stop: "stop",
    effort: "reasoning.effort",
    off: "reasoning.effort",
    verbosity: "text.verbosity",
    reasoning: "input.reasoning",
    citations: "annotations",
    fileName: "filename",
  },
  messages: {
    stop: "stop_sequences",
    effort: "output_config.effort",
    off: "thinking.type",
    verbosity: "verbosity",
    reasoning: "messages.thinking",
    citations: "citations",
    fileName: "title",
  },
};

/** Returns the context of a prompt. */
export function writeContextOf(prompt: Prompt, target: WriteTarget): ResponsesWriteContext {
  const calls = prompt.messages.flatMap(({ blocks }) => blocks).filter((block) => block.type === "tool_call");
  return {
    own: prompt.protocol === "responses",
    target,
    names: NAMES[prompt.protocol],
    customCalls: new Set(calls.filter(({ custom }) => custom === true).map(({ id }) => id)),
  };
}

/** Returns unknown members of this protocol. */
export function ownMembers(unknownMembers: UnknownMembers | undefined): JsonObject {
  return unknownMembers?.from === "responses" ? unknownMembers.members : {};
}

/** Writes a prompt-cache mark for clients of this protocol, where it is an extension; of other clients it is named. */
export function writeCache({ cache }: Pick<ContentBlock, "cache">, { own, target }: ResponsesWriteContext): JsonObject {
  if (cache === undefined) return {};
  // Five minutes are the default.
  if (own) return { cache_control: { type: "ephemeral", ...(cache.ttl === "1h" && { ttl: cache.ttl }) } };
  target.dropped.add("cache_control");
  return {};
}

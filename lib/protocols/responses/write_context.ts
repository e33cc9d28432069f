/** What every piece of a written prompt has to know about the whole. */
import type { ContentBlock, Prompt, Protocol, UnknownMembers } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** A prompt on its way to an upstream. */
export interface ResponsesWriteContext {
  /** The client speaks this protocol too: what it said goes out as it said it. */
  own: boolean;
  target: WriteTarget;
  /** What the client calls the things that may have to be left out. */
  names: Readonly<Names>;
  /** Ids of the calls of tools that take free text. */
  customCalls: ReadonlySet<string>;
}

/** Words of a client's protocol. */
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

/** The context of a prompt. */
export function writeContextOf(prompt: Prompt, target: WriteTarget): ResponsesWriteContext {
  const calls = prompt.messages.flatMap(({ blocks }) => blocks).filter((block) => block.type === "tool_call");
  return {
    own: prompt.protocol === "responses",
    target,
    names: NAMES[prompt.protocol],
    customCalls: new Set(calls.filter(({ custom }) => custom === true).map(({ id }) => id)),
  };
}

/** Members that came from this protocol and go back into it. */
export function ownMembers(unknownMembers: UnknownMembers | undefined): JsonObject {
  return unknownMembers?.from === "responses" ? unknownMembers.members : {};
}

/** Prompt-cache marks are an extension: they go back to where they came from, elsewhere they are named. */
export function writeCache({ cache }: Pick<ContentBlock, "cache">, { own, target }: ResponsesWriteContext): JsonObject {
  if (cache === undefined) return {};
  // Five minutes is what a mark means that says nothing more.
  if (own) return { cache_control: { type: "ephemeral", ...(cache.ttl === "1h" && { ttl: cache.ttl }) } };
  target.dropped.add("cache_control");
  return {};
}

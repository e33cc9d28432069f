/**
 * Relays chat completions. Edits: the model id of every chunk, and the usage, which is removed unless the client asked
 * for it.
 */
import { type Member, memberText, type ObjectText, scanMembers, spliceMembers } from "../../json/mod.ts";
import { templateEdit } from "../frame_template.ts";
import type { Frame, ResponseContext } from "../codec.ts";
import type { Relay } from "../relay.ts";
import { chatTemplateRule } from "./read_stream.ts";
import { streamWriter } from "./write_stream.ts";

const DONE: Frame = { data: "[DONE]" };

/** Requests to upstreams always ask for the usage, because the gateway bills by it. */
export const chatRelay: Relay = {
  streamEdits(body) {
    const streamOptions = memberText(body, "stream_options");
    return {
      stream_options: spliceMembers(streamOptions?.startsWith("{") ? streamOptions : "{}", { include_usage: "true" }),
    };
  },
  machine(context) {
    const edit = templateEdit((data) => editChunk(scanMembers(data), context), chatTemplateRule);
    return {
      push({ data, read }) {
        if (data === DONE.data) return [];
        const edited = read === undefined
          ? edit(data)
          : editChunk({ text: data, members: read.parsed?.members ?? [] }, context);
        return edited === undefined ? [] : [{ data: edited }];
      },
      end: () => [DONE],
      fail: (error) => streamWriter(context).push({ type: "error", error }),
    };
  },
};

/** Returns a chunk for the client; undefined if the client does not get it. */
function editChunk(chunk: ObjectText, context: ResponseContext): string | undefined {
  const usage = memberOf(chunk, "usage");
  const isUnrequested = usage !== undefined && context.prompt.includeUsage !== true;
  if (isUnrequested && isUsageOnly(chunk, usage)) return undefined;
  const edits: Record<string, string | undefined> = {};
  if (memberOf(chunk, "model") !== undefined) edits.model = JSON.stringify(context.model);
  if (isUnrequested) edits.usage = undefined;
  return chunk.text.trimStart().startsWith("{") ? spliceMembers(chunk, edits) : chunk.text;
}

/** True for the chunk with the usage and no choices. Azure's first chunk has neither and stays. */
function isUsageOnly(chunk: ObjectText, usage: Member): boolean {
  if (chunk.text.startsWith("null", usage.start)) return false;
  const choices = memberOf(chunk, "choices");
  return choices !== undefined && /^\[\s*\]$/.test(chunk.text.slice(choices.start, choices.end));
}

/** Returns a member of a chunk; undefined if there is none. As in the parser, the last of two equal names counts. */
function memberOf({ members }: ObjectText, memberName: string): Member | undefined {
  return members.findLast(({ name }) => name === memberName);
}
